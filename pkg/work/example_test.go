package work_test

import (
	"fmt"

	"shoal.dev/shoal/pkg/work"
)

// Every kind of work belongs to one role.
func ExampleKinds() {
	for _, kind := range work.Kinds() {
		fmt.Printf("%s is done by %s.\n", kind, work.Role(kind))
	}
	// Output:
	// backup is done by controlplane.
	// blobs is done by controlplane.
	// catalogue is done by ingest.
	// changes is done by apiserver.
	// contracts is done by apiserver.
	// email is done by apiserver.
	// erase is done by ingest.
	// expire is done by ingest.
	// export is done by apiserver.
	// harvest is done by apiserver.
	// import is done by ingest.
	// launch is done by apiserver.
	// linkstates is done by ingest.
	// match is done by ingest.
	// merge is done by ingest.
	// orphans is done by controlplane.
	// recount is done by billing.
	// reextract is done by ingest.
	// remove is done by ingest.
	// retain is done by ingest.
	// webhooks is done by apiserver.
	// wipe is done by ingest.
}
