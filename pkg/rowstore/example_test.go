package rowstore_test

import (
	"errors"
	"fmt"

	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/rowstore"
)

// Check finds a page that no store takes before it is put.
func ExamplePageWrite_Check() {
	err := rowstore.PageWrite{Page: &model.Page{Unit: model.Unit{Seq: 1 << 31}}}.Check()
	fmt.Println(errors.Is(err, rowstore.ErrRefused))
	// Output: true
}
