package upload_test

import (
	"fmt"
	"strings"

	"shoal.dev/shoal/pkg/upload"
)

func ExampleNewReader() {
	file := "sku;name;size\r\n0042;\"Chair; red\";\r\n"
	rows, err := upload.NewReader(upload.CSV, strings.NewReader(file), "")
	if err != nil {
		panic(err)
	}
	row, err := rows.Next()
	fmt.Println(string(row.AppendJSON(nil)), err)
	// Output: {"sku":"0042","name":"Chair; red"} <nil>
}
