package dispatch

import (
	"math"
	"slices"
	"time"

	"github.com/RoaringBitmap/roaring/v2"
)

// host holds what is out at one host over all runs, and how fast its seqs ended lately.
type host struct {
	name    string
	shard   int
	out     int
	waiting []*run  // runs with seqs set aside for the host
	blocked bool    // is in its shard's blocked list
	kept    float64 // seqs ended a second, decaying
	keptAt  time.Time
}

// decay is the time in which a host's remembered pace falls to 1/e.
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

// room says whether one more seq of the run may go to the host. A host may have two seconds' worth
// out of its recent pace, within its allowed pace, and at least minHostOut. There is no room while
// its shard's queue is full.
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

// left records that a seq at the host is no longer out.
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

// recall counts a seq as out again after Unaddressed took it back. The host's room and the window
// may be exceeded for a while.
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

// unblock offers the hosts that had no room because their shard's queue was full.
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

// waiting holds a run's seqs that are set aside for one host.
type waiting struct {
	seqs  *roaring.Bitmap
	ready bool // is in the run's ready list
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
		d.hosts[h.name] = h // it may have been removed while nothing was out
	}
	if w.seqs.CheckedAdd(seq) {
		d.aside++
	}
}

// pickAside picks a seq that is set aside, whatever room its host has; false if it is not set
// aside. A command with an unknown outcome is proposed again. Money or a new day may then grant
// what was first refused.
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

// offer puts a host into the run's ready list.
func (r *run) offer(h *host) {
	if w := r.aside[h]; w != nil && !w.ready {
		w.ready = true
		r.ready = append(r.ready, h)
	}
}
