package jsontext_test

import (
	"fmt"

	"shoal.dev/shoal/pkg/jsontext"
)

func ExampleAppendString() {
	row := jsontext.AppendString([]byte(`{"title":`), "13\" screen")
	fmt.Println(string(append(row, '}')))
	// Output: {"title":"13\" screen"}
}
