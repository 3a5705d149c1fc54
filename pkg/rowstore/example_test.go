package rowstore_test

import (
	"errors"
	"fmt"

	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/rowstore"
)

// A page that no store takes is found before it is put.
func ExamplePageWrite_Check() {
	err := rowstore.PageWrite{Page: &model.Page{Unit: model.Unit{Seq: 1 << 31}}}.Check()
	fmt.Println(errors.Is(err, rowstore.ErrRefused))
	// Output: true
}
