package blobstore_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"shoal.dev/shoal/pkg/blobstore"
)

func Example() {
	dir, _ := os.MkdirTemp("", "blobs")
	defer func() { _ = os.RemoveAll(dir) }()
	blobs, err := blobstore.OpenDirectory(dir)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = blobs.Close() }()

	ctx := context.Background()
	key := blobstore.Key{Kind: blobstore.Uploads, Owner: "alice", ID: "products.csv"}
	written, err := blobs.Put(ctx, key, strings.NewReader("name,price\nlamp,20\n"))
	fmt.Println(key, written.Bytes, err) // durable: a command may refer to it from here on

	r, err := blobs.Open(ctx, key, 11, 4)
	if err != nil {
		fmt.Println(err)
		return
	}
	part, err := io.ReadAll(r)
	fmt.Printf("%s %v %v\n", part, err, r.Close())
	// Output:
	// uploads/alice/products.csv 19 <nil>
	// lamp <nil> <nil>
}
