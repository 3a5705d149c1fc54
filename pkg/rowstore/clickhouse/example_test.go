package clickhouse_test

import (
	"fmt"

	"shoal.dev/shoal/pkg/rowstore/clickhouse"
)

// Check finds configuration errors without asking the server.
func ExampleConfig_Check() {
	fmt.Println(clickhouse.Config{URL: "http://clickhouse.example:8123/shoal"}.Check())
	fmt.Println(clickhouse.Config{URL: "clickhouse.example:8123"}.Check())
	// Output:
	// <nil>
	// row store: the address must begin with http:// or https://
}
