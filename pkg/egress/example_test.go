package egress_test

import (
	"context"
	"fmt"

	"shoal.dev/shoal/pkg/egress"
	"shoal.dev/shoal/pkg/fault"
)

// A private address is refused before anything is sent.
func ExampleClient_Do() {
	client, err := egress.New(egress.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	_, err = client.Do(context.Background(), &egress.Request{URL: "http://127.0.0.1/"})
	fmt.Println(fault.CodeOf(err))
	// Output: address_forbidden
}
