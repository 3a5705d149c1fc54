package utf8text_test

import (
	"fmt"

	"shoal.dev/shoal/pkg/utf8text"
)

func ExampleMendText() {
	mended := utf8text.MendText(map[string]any{"title": "Caf\xe9"})
	fmt.Printf("%+q\n", mended)
	// Output: map["title":"Caf\ufffd"]
}
