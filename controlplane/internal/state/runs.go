package state

import (
	"fmt"
	"maps"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
)

// Run is what is remembered of a run's units until it is closed: small and exact. A seq of the link list is out, closed,
// or set aside (neither); of a set-aside seq whose chain has begun, Begun knows how far it was settled.
//
// Runs are changed in place, under the store's lock, and are therefore no memdb records: a batch that settles a thousand
// units would copy as many tree nodes. Snapshots copy them whole.
type Run struct {
	Job      ids.ID
	Out      map[uint32]*Out
	Closed   *roaring.Bitmap
	Begun    map[uint32]*Chain
	Reserved int64 // sum of Money over Out
}

// Chain is how far a seq is settled.
type Chain struct {
	Start uint32              // lowest page that is not settled
	From  *model.Continuation // how to fetch it; nil exactly when Start is 0
	Ahead []Ahead             // pages beyond Start that are settled, ascending
	Last  *uint32             // the chain's last page once that is settled
	// Failed: the last page settled as an error, so the link counts as one.
	Failed bool
}

// Ahead is a settled page beyond the chain's Start.
type Ahead struct {
	Page uint32              `cbor:"1,keyasint"`
	Next *model.Continuation `cbor:"2,keyasint,omitempty"`
}

// Out is a seq that has been dispatched and neither closed nor come back. Money is always Price × (Grant − Free).
type Out struct {
	Chain
	Number  uint64 // of its newest dispatch
	Attempt uint8
	Tiers   model.TierSet
	Grant   uint32 // pages that may still be settled under this dispatch, 1 or more
	Free    uint32 // of them, those that a free request is held for
	Price   int64  // held per page otherwise
}

// Money is what is held for the seq.
func (o *Out) Money() int64 { return o.Price * int64(o.Grant-o.Free) }

// Has says whether a page of the chain is settled.
func (c *Chain) Has(page uint32) bool {
	if page < c.Start {
		return true
	}
	_, found := slices.BinarySearchFunc(c.Ahead, page, func(a Ahead, p uint32) int { return int(a.Page) - int(p) })
	return found
}

// Add marks a page as settled and moves Start over all that are settled in a row.
func (c *Chain) Add(page uint32, next *model.Continuation) {
	at, _ := slices.BinarySearchFunc(c.Ahead, page, func(a Ahead, p uint32) int { return int(a.Page) - int(p) })
	c.Ahead = slices.Insert(c.Ahead, at, Ahead{Page: page, Next: next})
	for len(c.Ahead) > 0 && c.Ahead[0].Page == c.Start {
		c.From = c.Ahead[0].Next
		c.Start++
		c.Ahead = c.Ahead[1:]
	}
	if len(c.Ahead) == 0 {
		c.Ahead = nil
	}
}

// Done says whether the chain is settled to its end.
func (c *Chain) Done() bool { return c.Last != nil && c.Start > *c.Last }

// NewRun makes the sets of a run of which nothing is out.
func NewRun(job ids.ID) *Run {
	return &Run{Job: job, Out: map[uint32]*Out{}, Closed: roaring.New(), Begun: map[uint32]*Chain{}}
}

func (r *Run) clone() *Run {
	c := &Run{Job: r.Job, Out: make(map[uint32]*Out, len(r.Out)), Closed: r.Closed.Clone(),
		Begun: make(map[uint32]*Chain, len(r.Begun)), Reserved: r.Reserved}
	for seq, o := range r.Out {
		copied := *o
		copied.Ahead = slices.Clone(o.Ahead)
		c.Out[seq] = &copied
	}
	for seq, chain := range r.Begun {
		copied := *chain
		copied.Ahead = slices.Clone(chain.Ahead)
		c.Begun[seq] = &copied
	}
	return c
}

// savedRun is a run in a snapshot: sorted, so that equal states have equal snapshots.
type savedRun struct {
	Job    ids.ID       `cbor:"1,keyasint"`
	Closed []byte       `cbor:"2,keyasint"`
	Out    []savedOut   `cbor:"3,keyasint,omitempty"`
	Begun  []savedChain `cbor:"4,keyasint,omitempty"`
}

type savedChain struct {
	Seq    uint32              `cbor:"1,keyasint"`
	Start  uint32              `cbor:"2,keyasint"`
	From   *model.Continuation `cbor:"3,keyasint,omitempty"`
	Ahead  []Ahead             `cbor:"4,keyasint,omitempty"`
	Last   *uint32             `cbor:"5,keyasint,omitempty"`
	Failed bool                `cbor:"6,keyasint,omitempty"`
}

type savedOut struct {
	Chain   savedChain    `cbor:"1,keyasint"`
	Number  uint64        `cbor:"2,keyasint"`
	Attempt uint8         `cbor:"3,keyasint"`
	Tiers   model.TierSet `cbor:"4,keyasint"`
	Grant   uint32        `cbor:"5,keyasint"`
	Free    uint32        `cbor:"6,keyasint,omitempty"`
	Price   int64         `cbor:"7,keyasint"`
}

func saveChain(seq uint32, c *Chain) savedChain {
	return savedChain{Seq: seq, Start: c.Start, From: c.From, Ahead: c.Ahead, Last: c.Last, Failed: c.Failed}
}

func (c savedChain) chain() Chain {
	return Chain{Start: c.Start, From: c.From, Ahead: c.Ahead, Last: c.Last, Failed: c.Failed}
}

func (r *Run) save() (savedRun, error) {
	closed, err := r.Closed.ToBytes()
	if err != nil {
		return savedRun{}, fmt.Errorf("closed set of run %s: %w", r.Job, err)
	}
	saved := savedRun{Job: r.Job, Closed: closed}
	for _, seq := range slices.Sorted(maps.Keys(r.Out)) {
		o := r.Out[seq]
		saved.Out = append(saved.Out, savedOut{Chain: saveChain(seq, &o.Chain), Number: o.Number, Attempt: o.Attempt,
			Tiers: o.Tiers, Grant: o.Grant, Free: o.Free, Price: o.Price})
	}
	for _, seq := range slices.Sorted(maps.Keys(r.Begun)) {
		saved.Begun = append(saved.Begun, saveChain(seq, r.Begun[seq]))
	}
	return saved, nil
}

func (saved savedRun) run() (*Run, error) {
	r := NewRun(saved.Job)
	if err := r.Closed.UnmarshalBinary(saved.Closed); err != nil {
		return nil, fmt.Errorf("closed set of run %s: %w", saved.Job, err)
	}
	for _, s := range saved.Out {
		o := &Out{Chain: s.Chain.chain(), Number: s.Number, Attempt: s.Attempt, Tiers: s.Tiers, Grant: s.Grant,
			Free: s.Free, Price: s.Price}
		r.Out[s.Chain.Seq] = o
		r.Reserved += o.Money()
	}
	for _, s := range saved.Begun {
		chain := s.chain()
		r.Begun[s.Seq] = &chain
	}
	return r, nil
}
