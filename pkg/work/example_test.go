package work_test

import (
	"fmt"

	"shoal.dev/shoal/pkg/work"
)

// Every kind of work has the role that does it.
func ExampleKinds() {
	for _, kind := range work.Kinds() {
		fmt.Println(kind, work.Role(kind))
	}
	// Output:
	// backup controlplane
	// blobs controlplane
	// contracts apiserver
	// email apiserver
	// erase ingest
	// expire ingest
	// export apiserver
	// launch apiserver
	// orphans controlplane
	// recount billing
	// remove ingest
	// retain ingest
	// webhooks apiserver
}
