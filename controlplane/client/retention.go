package client

import (
	"shoal.dev/shoal/pkg/rowstore"
	"shoal.dev/shoal/pkg/work"
)

// RowsSince is from which start on runs show what is stored of them, in Unix microseconds. What is
// older expired, and goes when the row store removes it. 0: nothing did yet.
func RowsSince(v *View) (since int64) {
	for _, item := range v.WorkOf(work.Expire, "") {
		since = max(since, rowstore.ReadExpiry(item.Progress))
	}
	return since
}
