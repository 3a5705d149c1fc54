package work

import (
	"context"
	"time"

	"shoal.dev/shoal/pkg/ids"
)

// Table is the table of work as one start of a node sees it. It is safe for concurrent use.
type Table interface {
	// Held lists what this start of the node holds, by the node's copy of the table. The copy holds
	// what an Exchange has done once that has returned nil.
	Held() []Item
	// Look looks at the node's copy of the table for what nodes may claim.
	Look(now time.Time, kinds []string) Look
	// Recur adds the one item of a kind, unless it is there. One that rests then comes due if it is
	// to wake.
	Recur(ctx context.Context, id ids.ID, kind string, wake bool) error
	// Exchange is the node's turn. When it fails the table may have changed, or not; repeating it
	// then comes to the same.
	Exchange(ctx context.Context, turn Turn) error
}

// Look is what a table looks like to a node.
type Look struct {
	Claimable bool     // an item of the kinds is free, or its owner's lease has ended
	Missing   []string // kinds of which there is no item
	Nodes     int      // that hold work, this one counted in any case
}

// Turn is what a node tells the table, and asks of it.
type Turn struct {
	Lease   time.Duration // on all that the node holds, from now on
	Reports []Report
	Wants   []Want
	Leaving bool // the node lets go of all
}

// End says how a node's holding of an item ended.
type End uint8

// The ends.
const (
	Held     End = iota // it did not: the node goes on
	Ended               // the item is done
	Rested              // until After
	Released            // any node may go on
	Failed              // it is tried again, after After
	GivenUp             // it stays, for people
)

// Report is what a node made of an item.
type Report struct {
	ID       ids.ID
	Epoch    uint64
	End      End
	Advanced bool // Progress is new
	Progress []byte
	After    time.Duration
	Error    string // of Failed and GivenUp
}

// Want asks for items of a kind.
type Want struct {
	Kind        string
	Most        int // that the node holds afterwards
	PerCustomer int // that all nodes hold of one customer
	// Behind is a customer: those behind it, by name, come first.
	Behind string
}
