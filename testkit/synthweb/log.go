package synthweb

import (
	"fmt"
	"iter"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"time"
)

// blockEntries is how many entries the log allocates at once.
const blockEntries = 1 << 14

// requestLog keeps the requests in the order in which they began.
type requestLog struct {
	limit int // entries

	mu       sync.Mutex
	blocks   [][]logEntry
	others   []string // targets of class unknown; an entry's n is the index in here
	clients  []netip.Addr
	count    int
	unlogged int64
}

type logEntry struct {
	start, end time.Time // end is zero while the request is open
	page       page
	conn       uint64
	inflight   int32
	status     int16
	client     int16 // index in clients
}

// addEntry adds an entry; nil when the log is full.
func (l *requestLog) addEntry(p page, target string, at time.Time, inflight int32, conn uint64,
	from netip.Addr) *logEntry {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.count == l.limit {
		l.unlogged++
		return nil
	}
	if p.class == unknown {
		p.n = int32(len(l.others))
		l.others = append(l.others, target)
	}
	if l.count%blockEntries == 0 {
		l.blocks = append(l.blocks, make([]logEntry, 0, min(blockEntries, l.limit-l.count)))
	}
	block := &l.blocks[len(l.blocks)-1]
	*block = append(*block, logEntry{start: at, page: p, conn: conn, inflight: inflight,
		client: l.client(from)})
	l.count++
	return &(*block)[len(*block)-1]
}

// client returns a client's index. Only loopback and private addresses occur, and few of them.
func (l *requestLog) client(from netip.Addr) int16 {
	at := slices.Index(l.clients, from)
	if at < 0 {
		at = len(l.clients)
		l.clients = append(l.clients, from)
	}
	return int16(at)
}

// end records when a request was answered, by the first call, and with what status, by the last
// one.
func (l *requestLog) end(entry *logEntry, at time.Time, status int) {
	if entry == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if entry.end.IsZero() {
		entry.end = at
	}
	entry.status = int16(status)
}

func (l *requestLog) counts() (requests, unlogged int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return int64(l.count) + l.unlogged, l.unlogged
}

// at copies entry i, with its target if that is of class unknown; false beyond the last.
func (l *requestLog) at(i int) (entry logEntry, other string, from netip.Addr, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if i >= l.count {
		return logEntry{}, "", netip.Addr{}, false
	}
	entry = l.blocks[i/blockEntries][i%blockEntries]
	if entry.page.class == unknown {
		other = l.others[entry.page.n]
	}
	return entry, other, l.clients[entry.client], true
}

// Request is one request in the log.
type Request struct {
	Host, Path string // Path with its query
	Class      Class
	Robots     bool      // it asked for robots.txt
	Followed   bool      // only a redirect leads there, perhaps from another host
	Start, End time.Time // when it was read; when answered. End is zero while it is open
	Status     int       // 0 while it is open and if there was no complete answer
	InFlight   int       // requests of the host in progress when this one began, itself included
	Conn       uint64    // numbers the connections
	From       netip.Addr
}

// Requests yields the log in the order in which the requests began, up to the last known one.
func (w *Web) Requests() iter.Seq[Request] {
	return func(yield func(Request) bool) {
		for i := 0; ; i++ {
			entry, other, from, ok := w.log.at(i)
			if !ok {
				return
			}
			path := other
			if entry.page.class != unknown {
				path = w.path(entry.page)
			}
			class := entry.page.class
			if !yield(Request{
				Host: w.names[entry.page.host], Path: path, Class: class,
				Robots: class == robotsTxt, Followed: class == hop || class == landing,
				Start: entry.start, End: entry.end, Status: int(entry.status),
				InFlight: int(entry.inflight), Conn: entry.conn,
				From: from,
			}) {
				return
			}
		}
	}
}

// Recount sums up the log. Requests for robots.txt count only in RobotsRequests and in the
// connections.
type Recount struct {
	URLs  map[string]URLCount
	Hosts map[string]HostCount
	Open  int // requests not yet answered
}

// URLCount counts the requests to one address; ?page=1 counts as the address without it.
type URLCount struct {
	Requests    int
	First, Last time.Time    // start of the first and of the last
	LastStatus  int          // of the request that began last
	From        []netip.Addr // the clients, in the order of their first request
}

// HostCount counts the requests to one site.
type HostCount struct {
	Requests, RobotsRequests int
	// MaxInFlight is the most requests in progress at once. A client that gives up still counts
	// until the answer is ready.
	MaxInFlight int
	// MaxConnections is the most connections in use at once. Each counts from its first request on
	// the site to the end of its last. Idle time before and after is not seen.
	MaxConnections int
	// MinGap is the shortest time between the starts of consecutive requests, -1 without any.
	// Between two clients the gap counts as it is. For one client it is half the span of three
	// requests. A request delayed on its way (by a new connection, a busy machine) comes closer to
	// the next one. It is closer by as much as it is farther from the one before.
	MinGap time.Duration
	// MaxClients is the most clients, by address, with a request in progress at once. It ignores
	// robots.txt and redirected requests, since a client that follows a redirect reads the other
	// host's robots.txt.
	MaxClients int
}

// Recount sums up the log. It fails if the log is incomplete.
func (w *Web) Recount() (*Recount, error) {
	if _, unlogged := w.log.counts(); unlogged > 0 {
		return nil, fmt.Errorf("synthweb: the log left %d requests out: raise LogLimit above %d",
			unlogged, w.config.LogLimit)
	}
	spans := make(map[string]map[uint64]span)
	recount := &Recount{URLs: make(map[string]URLCount), Hosts: make(map[string]HostCount)}
	last := make(map[string][]Request) // two per host
	working := make(map[string][]Request)
	for r := range w.Requests() {
		if r.End.IsZero() {
			recount.Open++
		}
		host, seen := recount.Hosts[r.Host]
		if !seen {
			host.MinGap = -1
		}
		host.MaxInFlight = max(host.MaxInFlight, r.InFlight)
		if !r.Followed && !r.Robots {
			working[r.Host] = append(slices.DeleteFunc(working[r.Host],
				func(w Request) bool { return !w.openAt(r.Start) }), r)
			host.MaxClients = max(host.MaxClients, clientsOf(working[r.Host]))
		}
		if spans[r.Host] == nil {
			spans[r.Host] = make(map[uint64]span)
		}
		spans[r.Host][r.Conn] = spans[r.Host][r.Conn].with(r)
		if r.Robots {
			host.RobotsRequests++
			recount.Hosts[r.Host] = host
			continue
		}
		host.Requests++
		if gap, ok := gapOf(last[r.Host], r); ok && (host.MinGap < 0 || gap < host.MinGap) {
			host.MinGap = gap
		}
		last[r.Host] = append(last[r.Host][max(len(last[r.Host])-1, 0):], r)
		recount.Hosts[r.Host] = host
		url := w.scheme() + r.Host + r.Path
		count := recount.URLs[url]
		if count.Requests == 0 {
			count.First = r.Start
		}
		count.Requests++
		count.Last, count.LastStatus = r.Start, r.Status
		if !slices.Contains(count.From, r.From) {
			count.From = append(count.From, r.From)
		}
		recount.URLs[url] = count
	}
	for name, conns := range spans {
		host := recount.Hosts[name]
		host.MaxConnections = mostAtOnce(slices.Collect(maps.Values(conns)))
		recount.Hosts[name] = host
	}
	return recount, nil
}

// gapOf is the gap between the at most two requests before and r, as MinGap defines it.
func gapOf(before []Request, r Request) (gap time.Duration, ok bool) {
	n := len(before)
	switch {
	case n > 0 && before[n-1].From != r.From:
		return max(r.Start.Sub(before[n-1].Start), 0), true
	case n > 1:
		return max(r.Start.Sub(before[0].Start), 0) / 2, true
	}
	return 0, false
}

// openAt says whether a request was in progress.
func (r Request) openAt(at time.Time) bool { return r.End.IsZero() || r.End.After(at) }

func clientsOf(requests []Request) int {
	clients := map[netip.Addr]bool{}
	for _, r := range requests {
		clients[r.From] = true
	}
	return len(clients)
}

// span is the time in which a connection was in use; open if it still is.
type span struct {
	begin, end time.Time
	open       bool
}

func (s span) with(r Request) span {
	if s.begin.IsZero() {
		s.begin = r.Start
	}
	if r.End.After(s.end) {
		s.end = r.End
	}
	s.open = r.End.IsZero()
	return s
}

// mostAtOnce is the largest number of overlapping spans.
func mostAtOnce(spans []span) int {
	slices.SortFunc(spans, func(a, b span) int { return a.begin.Compare(b.begin) })
	var current []span
	most := 0
	for _, s := range spans {
		current = slices.DeleteFunc(current,
			func(c span) bool { return !c.open && c.end.Before(s.begin) })
		current = append(current, s)
		most = max(most, len(current))
	}
	return most
}
