package sqlite_test

import (
	"context"
	"fmt"
	"os"

	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/rowstore/sqlite"
)

// A finished list stays, and never changes.
func ExampleOpen() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "rows")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	store, err := sqlite.Open(sqlite.Config{Dir: dir})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer store.Close()
	list, err := store.CreateList(ctx, ids.ID{1})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, address := range []string{"https://example.com/a", "https://example.com/b",
		"https://example.com/a"} {
		fmt.Println(list.Add(ctx, address, address))
	}
	fmt.Println(list.Finish(ctx))
	fmt.Println(store.Links(ctx, ids.ID{1}, 1, 10))
	// Output:
	// true <nil>
	// true <nil>
	// false <nil>
	// 2 <nil>
	// [{1 https://example.com/b}] <nil>
}
