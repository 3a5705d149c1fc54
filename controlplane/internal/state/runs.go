package state

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
)

// Run holds the units of a run until it is closed: small and exact. A seq of the link list is out,
// closed, or set aside (neither). Begun says how far the chain of a set-aside seq is settled.
//
// Runs change in place, under the store's lock, and so are not records of a table. A batch that
// settles a thousand units would copy as many tree nodes. Snapshots copy runs whole.
type Run struct {
	Job      ids.ID
	Out      map[uint32]*Out
	Closed   *roaring.Bitmap   // Close adds to it
	Begun    map[uint32]*Chain // SetAside and TakeUp change it
	Reserved int64             // sum of Money over Out

	closedSum uint64 // of sumOfSeq over Closed
	begunSum  uint64 // of sumOfChain over Begun
}

// SetAside keeps how far a seq is settled. The seq is no longer out.
func (r *Run) SetAside(seq uint32, chain Chain) {
	r.TakeUp(seq)
	r.Begun[seq] = &chain
	r.begunSum += sumOfChain(seq, &chain)
}

// TakeUp forgets what was set aside of a seq, and returns it; nil: nothing was.
func (r *Run) TakeUp(seq uint32) *Chain {
	chain := r.Begun[seq]
	if chain != nil {
		delete(r.Begun, seq)
		r.begunSum -= sumOfChain(seq, chain)
	}
	return chain
}

// Close closes a seq.
func (r *Run) Close(seq uint32) {
	delete(r.Out, seq)
	if r.Closed.CheckedAdd(seq) {
		r.closedSum += sumOfSeq(seq)
	}
}

// Chain says how far a seq is settled: its pages below Start, and no others. Pages settle in order.
// A page that arrives before its predecessor waits in the row store. It settles after the
// predecessor, or is removed with the run's other unsettled records.
type Chain struct {
	Start uint32              // lowest page that is not settled
	From  *model.Continuation // how to fetch it; nil exactly when Start is 0
	// Domain is the place of its price among the domain rows of the run's price table, from 1; 0:
	// its domain has no row. A begun chain keeps it under every leader.
	Domain uint8
}

// Out is a dispatched seq that is neither closed nor back. Money is always Price × (Grant − Free).
type Out struct {
	Chain
	Number  uint64 // of its newest dispatch
	Attempt uint8  // dispatches since a page of the chain last settled
	Tiers   model.TierSet
	Grant   uint32 // pages that may still settle under this dispatch, 1 or more
	Free    uint32 // pages of Grant held as free requests
	Price   int64  // held for each other page
	Read    *Read  // what it counts as for daily limits, nil: nothing
	Limited bool   // a daily limit is reached: nothing is held or fetched
	// Unbilled: billing was off at dispatch. Nothing is held, and its pages cost nothing.
	Unbilled bool
}

// Money returns what is held for the seq.
func (o *Out) Money() int64 { return o.Price * int64(o.Grant-o.Free) }

// NewRun makes the sets of a run, all empty.
func NewRun(job ids.ID) *Run {
	return &Run{Job: job, Out: map[uint32]*Out{}, Closed: roaring.New(), Begun: map[uint32]*Chain{}}
}

// savedRun is a run in a snapshot. It is sorted, so that equal states have equal snapshots.
type savedRun struct {
	Job    ids.ID       `cbor:"1,keyasint"`
	Closed []byte       `cbor:"2,keyasint"`
	Out    []savedOut   `cbor:"3,keyasint,omitempty"`
	Begun  []savedChain `cbor:"4,keyasint,omitempty"`
	// Alike packs most of the out set, since a fast run has tens of thousands of seqs out.
	Alike []savedAlike `cbor:"5,keyasint,omitempty" since:"2"`
}

// savedAlike holds dispatched seqs that differ only in seq and number.
type savedAlike struct {
	As savedOut `cbor:"1,keyasint"` // with seq and number 0
	// Units has two varints for each (encoding/binary): its seq and number, less the previous ones.
	Units []byte `cbor:"2,keyasint"`

	last unit // of Units
}

type unit struct{ seq, number int64 }

type savedChain struct {
	Seq   uint32              `cbor:"1,keyasint"`
	Start uint32              `cbor:"2,keyasint"`
	From  *model.Continuation `cbor:"3,keyasint,omitempty"`
	// Only prices that admins set produce Domain.
	Domain uint8 `cbor:"4,keyasint,omitempty" since:"2"`
}

type savedOut struct {
	Chain   savedChain    `cbor:"1,keyasint"`
	Number  uint64        `cbor:"2,keyasint"`
	Attempt uint8         `cbor:"3,keyasint"`
	Tiers   model.TierSet `cbor:"4,keyasint"`
	Grant   uint32        `cbor:"5,keyasint"`
	Free    uint32        `cbor:"6,keyasint,omitempty"`
	Price   int64         `cbor:"7,keyasint"`
	Read    *Read         `cbor:"8,keyasint,omitempty"`
	Limited bool          `cbor:"9,keyasint,omitempty"`
	// Only settings produce Unbilled.
	Unbilled bool `cbor:"10,keyasint,omitempty" since:"2"`
}

func saveChain(seq uint32, c *Chain) savedChain {
	return savedChain{Seq: seq, Start: c.Start, From: c.From, Domain: c.Domain}
}

func (c savedChain) chain() Chain {
	return Chain{Start: c.Start, From: c.From, Domain: c.Domain}
}

// saveRuns copies all runs for a snapshot, but sorts neither them nor their lists. Commands wait
// for it, so it makes few allocations.
func saveRuns(runs map[ids.ID]*Run) ([]savedRun, error) {
	var bytesClosed, outs, begun int
	for _, r := range runs {
		bytesClosed += int(r.Closed.GetSerializedSizeInBytes())
		outs, begun = outs+len(r.Out), begun+len(r.Begun)
	}
	var closed bytes.Buffer
	closed.Grow(bytesClosed)
	all, out, chains := make([]savedRun, 0, len(runs)), make([]savedOut, 0, outs),
		make([]savedChain, 0, begun)
	for _, r := range runs {
		fromClosed, fromOut, fromChain := closed.Len(), len(out), len(chains)
		if _, err := r.Closed.WriteTo(&closed); err != nil {
			return nil, fmt.Errorf("closed set of run %s: %w", r.Job, err)
		}
		for seq, o := range r.Out {
			out = append(out, savedOut{Chain: saveChain(seq, &o.Chain), Number: o.Number,
				Attempt: o.Attempt, Tiers: o.Tiers, Grant: o.Grant, Free: o.Free, Price: o.Price,
				Read: o.Read, Limited: o.Limited, Unbilled: o.Unbilled})
		}
		for seq, chain := range r.Begun {
			chains = append(chains, saveChain(seq, chain))
		}
		all = append(all, savedRun{Job: r.Job, Closed: closed.Bytes()[fromClosed:],
			Out: out[fromOut:], Begun: chains[fromChain:]})
	}
	return all, nil
}

// sort orders the lists as they are written.
func (saved *savedRun) sort() {
	slices.SortFunc(saved.Out, func(a, b savedOut) int {
		return cmp.Compare(a.Chain.Seq, b.Chain.Seq)
	})
	slices.SortFunc(saved.Begun, func(a, b savedChain) int { return cmp.Compare(a.Seq, b.Seq) })
}

// pack moves similar outs from the sorted list to Alike, in the order of their first seqs.
func (saved *savedRun) pack() {
	places := map[savedOut]int{}
	rest := saved.Out[:0]
	for _, o := range saved.Out {
		if o.Chain.From != nil || o.Read != nil {
			rest = append(rest, o)
			continue
		}
		as := o
		as.Chain.Seq, as.Number = 0, 0
		place, known := places[as]
		if !known {
			place = len(saved.Alike)
			places[as] = place
			saved.Alike = append(saved.Alike, savedAlike{As: as})
		}
		saved.Alike[place].add(unit{seq: int64(o.Chain.Seq), number: int64(o.Number)})
	}
	saved.Out = rest
}

func (a *savedAlike) add(u unit) {
	a.Units = binary.AppendVarint(a.Units, u.seq-a.last.seq)
	a.Units = binary.AppendVarint(a.Units, u.number-a.last.number)
	a.last = u
}

// unpack appends the outs to all.
func (a *savedAlike) unpack(all []savedOut) ([]savedOut, error) {
	var u unit
	for rest := a.Units; len(rest) > 0; {
		seq, n := binary.Varint(rest)
		number, m := binary.Varint(rest[max(n, 0):])
		if n <= 0 || m <= 0 {
			return nil, errors.New("a list of what is out is cut short")
		}
		rest = rest[n+m:]
		u.seq, u.number = u.seq+seq, u.number+number
		o := a.As
		o.Chain.Seq, o.Number = uint32(u.seq), uint64(u.number)
		all = append(all, o)
	}
	return all, nil
}

func (saved savedRun) run() (*Run, error) {
	r := NewRun(saved.Job)
	if err := r.Closed.UnmarshalBinary(saved.Closed); err != nil {
		return nil, fmt.Errorf("closed set of run %s: %w", saved.Job, err)
	}
	for seq := range roaring.Values(r.Closed) {
		r.closedSum += sumOfSeq(seq)
	}
	outs := saved.Out
	for i := range saved.Alike {
		var err error
		if outs, err = saved.Alike[i].unpack(outs); err != nil {
			return nil, fmt.Errorf("run %s: %w", saved.Job, err)
		}
	}
	for _, s := range outs {
		o := &Out{Chain: s.Chain.chain(), Number: s.Number, Attempt: s.Attempt, Tiers: s.Tiers,
			Grant: s.Grant,
			Free:  s.Free, Price: s.Price, Read: s.Read, Limited: s.Limited, Unbilled: s.Unbilled}
		r.Out[s.Chain.Seq] = o
		r.Reserved += o.Money()
	}
	for _, s := range saved.Begun {
		r.SetAside(s.Seq, s.chain())
	}
	return r, nil
}
