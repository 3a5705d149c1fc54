package dispatch

import (
	"math"
	"slices"
	"time"

	"github.com/RoaringBitmap/roaring/v2"
)

// host is what is out at one host over all runs, and how fast it lately brought things to an end.
type host struct {
	name    string
	shard   int
	out     int
	waiting []*run  // runs with seqs set aside for it
	blocked bool    // stands in its shard's blocked list
	kept    float64 // endings a second, decaying
	keptAt  time.Time
}

// decay is the time in which the memory of a host's pace fades to 1/e.
const decay = time.Second

func (h *host) ended(now time.Time) {
	h.kept = h.pace(now) + 1/decay.Seconds()
	h.keptAt = now
}

func (h *host) pace(now time.Time) float64 {
	return h.kept * math.Exp(-now.Sub(h.keptAt).Seconds()/decay.Seconds())
}

func (h *host) forget(r *run) {
	h.waiting = slices.DeleteFunc(h.waiting, func(other *run) bool { return other == r })
}

func (d *Dispatcher) hostOf(url string) *host {
	name := d.config.HostOf(url)
	h := d.hosts[name]
	if h == nil {
		h = &host{name: name, shard: d.config.ShardOf(name), keptAt: d.config.Now()}
		d.hosts[name] = h
		if d.shards[h.shard].outs == nil {
			d.shards[h.shard].open()
		}
	}
	return h
}

// room says whether one more of the run may go to the host. A host has about two seconds of the
// pace that it is allowed and lately kept, at least minHostOut. A host whose shard cannot be
// published to has none.
func (d *Dispatcher) room(r *run, h *host) bool {
	if s := &d.shards[h.shard]; len(s.unsent) >= maxUnsent {
		if !h.blocked {
			h.blocked = true
			s.blocked = append(s.blocked, h)
		}
		return false
	}
	most := 2 * h.pace(d.config.Now())
	if r.pace > 0 {
		most = min(most, 2*r.pace)
	}
	return float64(h.out) < max(most, minHostOut)
}

// left notes that one seq at the host is not out any more.
func (d *Dispatcher) left(h *host, finished bool) {
	h.out--
	if finished {
		h.ended(d.config.Now())
	}
	for _, r := range h.waiting {
		r.offer(h)
	}
	if h.out == 0 && len(h.waiting) == 0 {
		delete(d.hosts, h.name)
	}
}

// recall counts a seq as out again that Unaddressed took back. That may exceed the host's room and
// the window for a while.
func (d *Dispatcher) recall(o *outSeq) {
	if known := d.hosts[o.host.name]; known != nil {
		o.host = known
	} else { // it was forgotten while nothing was out
		d.hosts[o.host.name] = o.host
	}
	o.unread = false
	o.host.out++
	d.out++
}

// unblock offers the hosts that had no room because too much waited for their shard.
func (d *Dispatcher) unblock(s *shard) {
	if len(s.unsent) >= maxUnsent {
		return
	}
	for _, h := range s.blocked {
		h.blocked = false
		for _, r := range h.waiting {
			r.offer(h)
		}
	}
	s.blocked = nil
}

// waiting is a run's seqs that are set aside for one host.
type waiting struct {
	seqs  *roaring.Bitmap
	ready bool // stands in the run's ready list
}

func (w *waiting) pop() uint32 {
	seq := w.seqs.Minimum()
	w.seqs.Remove(seq)
	return seq
}

func (w *waiting) empty() bool { return w.seqs.IsEmpty() }

func (d *Dispatcher) setAside(r *run, h *host, seq uint32) {
	w := r.aside[h]
	if w == nil {
		w = &waiting{seqs: roaring.New()}
		r.aside[h] = w
		h.waiting = append(h.waiting, r)
		d.hosts[h.name] = h // it may have been forgotten while nothing was out
	}
	if w.seqs.CheckedAdd(seq) {
		d.aside++
	}
}

// pickAside picks a seq that is set aside, whether its host has room or not; false when it is not.
// A command whose outcome is not known is proposed again. It may be granted then what it was
// refused at first, since money has come, or another day.
func (d *Dispatcher) pickAside(r *run, seq uint32) (link, bool) {
	for h, w := range r.aside {
		if !w.seqs.CheckedRemove(seq) {
			continue
		}
		d.aside--
		if w.empty() {
			delete(r.aside, h)
			h.forget(r)
		}
		l := link{seq: seq, host: h}
		d.pick(r, l)
		return l, true
	}
	return link{}, false
}

// offer puts the host into the run's ready list.
func (r *run) offer(h *host) {
	if w := r.aside[h]; w != nil && !w.ready {
		w.ready = true
		r.ready = append(r.ready, h)
	}
}
