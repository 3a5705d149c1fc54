package frontier

import "time"

// host is an authority with items waiting or running, or whose paces are not over yet.
type host struct {
	name   string
	shares list[share] // customers with items here, next turn first

	active    int           // connections
	started   int64         // the newest request start
	begun     bool          // started is set
	spaced    time.Duration // spacing of that start
	until     int64         // end of the paces of all starts
	notBefore int64         // back-off
	strikes   int           // throttling answers in a row
	delay     time.Duration

	ready bool // the item of its turn may start: its queues are listed
	// overtaken: another queue was served before the turn's queue.
	overtaken bool
	unlisted  bool  // while ready: some of its queues are not listed
	wakes     int64 // while asleep
	place     int   // in the heap of sleeping hosts
}

func (f *Frontier) hostOf(name string) *host {
	h := f.hosts[name]
	if h == nil {
		h = &host{name: name, place: noPlace}
		f.hosts[name] = h
	}
	return h
}

// readyAt returns when the pace of a queue's next item allows its start, and whether it allows
// another connection.
func (h *host) readyAt(q *queue) (at int64, free bool) { return h.after(q, q.pace()) }

// after returns when a queue may have another start at a pace. Each run keeps its own pace. Between
// starts of two runs the shorter spacing counts, so that nobody waits for a slow run.
func (h *host) after(q *queue, pace Pace) (at int64, free bool) {
	at = max(h.notBefore, q.notBefore)
	if h.begun {
		at = max(at, h.started+int64(max(min(pace.spacing(), h.spaced), h.delay)))
	}
	return at, pace.Connections <= 0 || h.active < pace.Connections
}

func (h *host) noteStart(q *queue, pace Pace, now int64) {
	h.started, h.begun, h.spaced = now, true, pace.spacing()
	q.notBefore = now + int64(h.spaced)
	h.until = max(h.until, q.notBefore)
}

// turn returns the queue that was served longest ago, by customer and then by run; nil if nothing
// waits. Queues whose pace allows a start come first. Then come those of customers that may start
// nothing, then the one that is due first. A customer or run without items keeps its place until
// its turn comes. So leaving and returning before then gains no earlier turn.
func (h *host) turn(f *Frontier, now int64) *queue {
	var crowded, next *queue
	var first int64 // when next is due
	for n := h.shares.first; n != nil; {
		s := n.value
		n = n.next
		q, at := s.turn(f, h, now)
		switch {
		case s.queues.front() == nil:
			h.shares.remove(&s.node)
			delete(f.shares, shareKey{s.customer, h})
		case q == nil:
		case at > now:
			if next == nil || at < first {
				next, first = q, at
			}
		case f.mayStart(s.customer):
			return q
		case crowded == nil:
			crowded = q
		}
	}
	if crowded != nil {
		return crowded
	}
	return next
}

// turn returns the customer's queue whose turn it is at a host, and when it is due.
func (s *share) turn(f *Frontier, h *host, now int64) (next *queue, first int64) {
	for n := s.queues.first; n != nil; {
		q := n.value
		n = n.next
		if q.items.front() == nil {
			if q.notBefore <= now && s.queues.front() == q {
				f.dropQueue(q)
			}
			continue
		}
		at, _ := h.readyAt(q)
		if at <= now {
			return q, at
		}
		if next == nil || at < first {
			next, first = q, at
		}
	}
	return next, first
}

// isIdle says whether nothing waits or runs at the host.
func (h *host) isIdle() bool {
	if h.active > 0 {
		return false
	}
	for s := h.shares.first; s != nil; s = s.next {
		for q := s.value.queues.first; q != nil; q = q.next {
			if q.value.items.front() != nil {
				return false
			}
		}
	}
	return true
}

// served ends a queue's turn.
func (h *host) served(q *queue) {
	q.share.queues.toBack(&q.turn)
	h.shares.toBack(&q.share.node)
}

// placeHost updates what the host waits for: nothing (it is ready), a time, a connection, or an
// item. It drops the host when nothing waits or runs and the paces of its starts are over.
func (f *Frontier) placeHost(h *host, now int64) {
	if h.place != noPlace {
		f.asleep.remove(h)
	}
	was := h.ready
	if was {
		h.ready = false
		f.ready--
	}
	q := h.turn(f, now)
	if q == nil {
		if h.active > 0 {
			return
		}
		at := max(h.notBefore, h.until)
		if h.begun {
			at = max(at, h.started+int64(h.delay))
		}
		if at <= now {
			delete(f.hosts, h.name)
			return
		}
		f.sleepUntil(h, at)
		return
	}
	at, free := h.readyAt(q)
	switch {
	case !free: // Done calls placeHost again
	case at > now:
		f.sleepUntil(h, at)
	default:
		h.ready = true
		f.ready++
		if f.list(q); was && !h.unlisted {
			return
		}
		h.unlisted = false
		// Of new entries, the one listed last gets the first turn.
		for s := h.shares.last; s != nil; s = s.prev {
			for q := s.value.queues.last; q != nil; q = q.prev {
				f.list(q.value)
			}
		}
	}
}

func (f *Frontier) sleepUntil(h *host, at int64) {
	if h.place != noPlace {
		f.asleep.remove(h)
	}
	h.wakes = at
	f.asleep.push(h)
}
