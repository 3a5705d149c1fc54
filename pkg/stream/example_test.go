package stream_test

import (
	"context"
	"fmt"

	"shoal.dev/shoal/pkg/stream"
)

// A group begins at the oldest held record, and each record stays held until it is committed.
func ExampleMemory() {
	ctx := context.Background()
	log, err := stream.NewMemory(stream.Config{Partitions: 4})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer log.Close()
	reader, err := log.Consume(stream.Pages, "ingest")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer reader.Close()
	if err := log.Publish(ctx, stream.Pages, 2, []byte("first"), []byte("second")); err != nil {
		fmt.Println(err)
		return
	}
	messages, err := reader.Fetch(ctx, 10)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, m := range messages {
		fmt.Printf("%d/%d %s\n", m.Partition, m.Offset, m.Value)
	}
	fmt.Println(reader.Commit(ctx, messages), log.Lag(stream.Pages))
	// Output:
	// 2/0 first
	// 2/1 second
	// <nil> 0
}
