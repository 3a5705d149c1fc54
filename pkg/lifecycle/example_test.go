package lifecycle_test

import (
	"context"
	"fmt"

	"shoal.dev/shoal/pkg/lifecycle"
)

// Parts start in order and stop in reverse.
func ExampleRun() {
	ctx, stop := context.WithCancel(context.Background())
	part := func(name string, after func()) lifecycle.Part {
		ready := make(chan struct{})
		return lifecycle.Part{Name: name, Ready: ready, Run: func(ctx context.Context) error {
			fmt.Println("start", name)
			close(ready)
			after()
			<-ctx.Done()
			fmt.Println("stop", name)
			return nil
		}}
	}
	err := lifecycle.Run(ctx, part("store", func() {}), part("server", stop))
	fmt.Println(err)
	// Output:
	// start store
	// start server
	// stop server
	// stop store
	// <nil>
}
