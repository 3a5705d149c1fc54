package dispatch

import (
	"cmp"
	"slices"
	"time"

	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
)

// shard holds what is out in one shard.
type shard struct {
	outs    map[command.DispatchRef]*outSeq // by job and seq; Number 0
	unsent  []*outSeq                       // in the order of publication
	newest  uint64                          // number of the newest dispatch sent by this leadership
	blocked []*host                         // hosts without room because unsent is full
	markers []sentMarker                    // not returned yet, oldest first
}

// sentMarker stands behind everything published before it.
type sentMarker struct {
	number uint64
	before uint64
	at     time.Time
}

// maxMarkers is how many markers of a shard are remembered. Older ones are ignored when they
// return.
const maxMarkers = 64

func (s *shard) open() { s.outs = map[command.DispatchRef]*outSeq{} }

// Send is a dispatch to publish. Task.URL is empty if it must be read from the list again.
type Send struct {
	Task model.Task
	List ids.ID
}

// Unsent returns the next dispatches to publish to a shard, in order, at most most. They stay
// unsent until Sent.
func (d *Dispatcher) Unsent(number, most int) []Send {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := &d.shards[number]
	var sends []Send
	kept := s.unsent[:0]
	for i, o := range s.unsent {
		r := d.runs[o.grant.Job]
		if r == nil || r.outs[o.grant.Seq] != o || o.isSent || r.ended {
			continue // settled meanwhile, or to be given back
		}
		if len(sends) == most {
			kept = append(kept, s.unsent[i:]...)
			break
		}
		kept = append(kept, o)
		sends = append(sends, Send{Task: r.task(o, o.url), List: r.list})
	}
	clear(s.unsent[len(kept):])
	s.unsent = kept
	d.unblock(s)
	return sends
}

// Sent records that the log accepted the dispatches.
func (d *Dispatcher) Sent(number int, tasks []Send) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.published++
	s := &d.shards[number]
	for i := range tasks {
		t := &tasks[i].Task
		s.newest = max(s.newest, t.Number)
		o := s.outs[command.DispatchRef{Job: t.Job, Seq: t.Seq}]
		if o != nil && o.grant.Number == t.Number {
			o.isSent, o.sent, o.url = true, d.published, ""
		}
	}
	kept := s.unsent[:0]
	for _, o := range s.unsent {
		if !o.isSent {
			kept = append(kept, o)
		}
	}
	clear(s.unsent[len(kept):])
	s.unsent = kept
	d.unblock(s)
}

// Unaddressed takes back dispatches whose addresses could not be read. They take no room from
// others: in their shard, at their hosts or in the window. They stay unsent, and Unlocated lists
// them.
func (d *Dispatcher) Unaddressed(number int, sends []Send) {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := &d.shards[number]
	for i := range sends {
		t := &sends[i].Task
		r, o := d.runs[t.Job], s.outs[command.DispatchRef{Job: t.Job, Seq: t.Seq}]
		if r != nil && o != nil && o.grant.Number == t.Number && !o.isSent && !o.unread {
			o.unread = true
			r.unlocated = append(r.unlocated, t.Seq)
			d.out--
			d.left(o.host, false)
		}
	}
	s.unsent = slices.DeleteFunc(s.unsent, func(o *outSeq) bool { return o.unread })
	d.unblock(s)
}

// Newest returns the number of the newest dispatch ever sent to a shard, by any leadership.
func (d *Dispatcher) Newest(number int) uint64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.newest(number)
}

func (d *Dispatcher) newest(number int) uint64 {
	return max(d.shards[number].newest, d.config.Newest)
}

// Mark makes the next marker of a shard, to be published behind what Sent has recorded. It returns
// false when nothing published is out.
func (d *Dispatcher) Mark(number int) (model.Marker, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := &d.shards[number]
	anySent := false
	for _, o := range s.outs {
		if o.isSent {
			anySent = true
			break
		}
	}
	if !anySent {
		s.markers = nil
		return model.Marker{}, false
	}
	d.markers++
	s.markers = append(s.markers,
		sentMarker{number: d.markers, before: d.published, at: d.config.Now()})
	if len(s.markers) > maxMarkers {
		s.markers = s.markers[1:]
	}
	return model.Marker{Leader: d.config.Leader, Shard: uint16(number), Number: d.markers,
		Newest: d.newest(number)}, true
}

// Returned takes a marker that came back. It returns the lost dispatches: published before it, not
// open in it, and still out.
func (d *Dispatcher) Returned(m model.Marker) []command.DispatchRef {
	d.mu.Lock()
	defer d.mu.Unlock()
	if m.Leader != d.config.Leader || int(m.Shard) >= len(d.shards) {
		return nil
	}
	s := &d.shards[m.Shard]
	before, known := uint64(0), false
	for i, sent := range s.markers {
		if sent.number == m.Number {
			before, known = sent.before, true
			s.markers = append([]sentMarker(nil), s.markers[i+1:]...)
			break
		}
	}
	if !known {
		return nil
	}
	open := make(map[command.DispatchRef]struct{})
	for _, tasks := range m.Open {
		for _, seq := range tasks.Seqs {
			open[command.DispatchRef{Job: tasks.Job, Seq: seq}] = struct{}{}
		}
	}
	var lost []command.DispatchRef
	for ref, o := range s.outs {
		if _, held := open[ref]; !held && o.isSent && o.sent <= before {
			lost = append(lost, o.grant.DispatchRef)
		}
	}
	slices.SortFunc(lost, byNumber)
	return lost
}

func byNumber(a, b command.DispatchRef) int { return cmp.Compare(a.Number, b.Number) }
