package work

import (
	"context"
	"time"

	"shoal.dev/shoal/pkg/ids"
)

// Table is the table of work for one start of a node. It is safe for concurrent use.
type Table interface {
	// Held lists what this start of the node holds, from the node's copy of the table. The copy
	// includes an Exchange once that has returned nil.
	Held() []Item
	// Look inspects the node's copy of the table for what nodes may claim.
	Look(now time.Time, kinds []string) Look
	// Recur adds the one item of a kind, unless it exists. With wake, an item that rests becomes
	// due.
	Recur(ctx context.Context, id ids.ID, kind string, wake bool) error
	// Exchange is the node's turn. If it fails, the table may have changed or not. Repeating it is
	// safe.
	Exchange(ctx context.Context, turn Turn) error
}

// Look is what a node sees of a table.
type Look struct {
	Claimable bool     // an item of the kinds is free, or its owner's lease has ended
	Missing   []string // kinds without an item
	Nodes     int      // that hold work, always including this one
}

// Turn is what a node tells the table and asks of it.
type Turn struct {
	Lease   time.Duration // on everything that the node holds, from now on
	Reports []Report
	Wants   []Want
	Leaving bool // the node gives up everything
}

// End is how a node's holding of an item ended.
type End uint8

// The ends.
const (
	Held     End = iota // not ended: the node continues
	Ended               // the item is done
	Rested              // not before After
	Released            // any node may continue
	Failed              // to be retried, after After
	GivenUp             // kept, for people
)

// Report is what a node did with an item.
type Report struct {
	ID       ids.ID
	Epoch    uint64
	End      End
	Advanced bool // Progress is new
	Progress []byte
	After    time.Duration
	Error    string // with Failed and GivenUp
}

// Want asks for items of a kind.
type Want struct {
	Kind        string
	Most        int // the most that the node holds afterwards
	PerCustomer int // the most of one customer over all nodes
	// Behind is a customer: the customers after it, by name, come first.
	Behind string
}
