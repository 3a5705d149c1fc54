package frontier

import "time"

// host is an authority that has something waiting or running, or whose pace forbids to forget it.
type host struct {
	name   string
	shares list[share] // customers with items here, next turn first

	active    int   // connections
	started   int64 // the newest request start
	begun     bool  // started says something
	spaced    time.Duration
	notBefore int64 // back-off
	strikes   int   // throttling answers in a row
	delay     time.Duration

	ready bool // its turn's item may start: its queues are listed
	// overtaken: the turn's queue has been passed over.
	overtaken bool
	unlisted  bool  // while ready: not all of its queues are listed
	wakes     int64 // while asleep
	place     int   // in the heap of hosts that sleep
}

func (f *Frontier) hostOf(name string) *host {
	h := f.hosts[name]
	if h == nil {
		h = &host{name: name, place: noPlace}
		f.hosts[name] = h
	}
	return h
}

// readyAt is when the pace allows the next start, and whether it allows one more connection.
func (h *host) readyAt(pace Pace) (at int64, free bool) {
	at = h.notBefore
	if h.begun {
		at = max(at, h.started+int64(max(pace.spacing(), h.delay)))
	}
	return at, pace.Connections <= 0 || h.active < pace.Connections
}

func (h *host) noteStart(pace Pace, now int64) {
	h.started, h.begun, h.spaced = now, true, pace.spacing()
}

// turn is the queue that was served longest ago, by customer and then by run; nil when nothing
// waits. Customers who may start nothing come last. A customer or run that has nothing left keeps
// its place until its turn comes. Who comes back before then has not jumped the queue by having
// been away.
func (h *host) turn(f *Frontier) *queue {
	var later *queue
	for n := h.shares.first; n != nil; {
		s := n.value
		n = n.next
		q := s.turn(f)
		switch {
		case q == nil:
			h.shares.remove(&s.node)
			delete(f.shares, shareKey{s.customer, h})
		case f.mayStart(s.customer):
			return q
		case later == nil:
			later = q
		}
	}
	return later
}

// turn is the customer's queue that was served longest ago; nil when nothing waits.
func (s *share) turn(f *Frontier) *queue {
	for q := s.queues.front(); q != nil; q = s.queues.front() {
		if q.items.front() != nil {
			return q
		}
		f.dropQueue(q)
	}
	return nil
}

// isIdle says that nothing waits or runs at the host.
func (h *host) isIdle(f *Frontier) bool { return h.active == 0 && h.turn(f) == nil }

// served ends a queue's turn.
func (h *host) served(q *queue) {
	q.share.queues.toBack(&q.turn)
	h.shares.toBack(&q.share.node)
}

// placeHost finds out what the host waits for after something changed: nothing (it is ready), a
// time, a connection, or an item. It forgets the host when nothing waits or runs and the pace of
// its last start is over. Only a slower run that comes later could miss that start, and it keeps
// its own pace from its own first start on.
func (f *Frontier) placeHost(h *host, now int64) {
	if h.place != noPlace {
		f.asleep.remove(h)
	}
	was := h.ready
	if was {
		h.ready = false
		f.ready--
	}
	q := h.turn(f)
	if q == nil {
		if h.active > 0 {
			return
		}
		at := h.notBefore
		if h.begun {
			at = max(at, h.started+int64(max(h.spaced, h.delay)))
		}
		if at <= now {
			delete(f.hosts, h.name)
			return
		}
		f.sleepUntil(h, at)
		return
	}
	at, free := h.readyAt(q.pace())
	switch {
	case !free: // Done comes here again
	case at > now:
		f.sleepUntil(h, at)
	default:
		h.ready = true
		f.ready++
		if f.list(q); was && !h.unlisted {
			return
		}
		h.unlisted = false
		// Who is listed last comes first of those that are new in the turns.
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
