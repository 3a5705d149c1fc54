package agents

import (
	"context"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"shoal.dev/shoal/apiserver/internal/operation"
	"shoal.dev/shoal/pkg/fault"
)

// Limits of sessions.
const (
	maxOfCustomer = 20
	// MaxSessions is the limit of all customers together.
	MaxSessions = 4_096
)

// sessions tracks the sessions that clients have begun. The library keeps them and ends idle ones,
// but does not expose who has how many.
type sessions struct {
	mu     sync.Mutex
	of     map[string][]*session // by customer
	open   map[string]*session   // by id; includes sessions that are ending
	count  int
	ended  bool
	behind sync.WaitGroup
}

type session struct {
	*mcp.ServerSession
	holder   string // the credential that began it
	used     time.Time
	messages sync.WaitGroup  // being answered
	ctx      context.Context // context of its calls; it ends with the session
	end      context.CancelFunc
}

var (
	errManySessions = fault.New(fault.Unavailable, "too many agents have a session here; try again "+
		"later")
	errStopping = fault.New(fault.Unavailable, "the server stops")
)

// addSession records a new session. If the customer has too many, the least recently used one ends.
func (s *sessions) addSession(from *operation.Caller, own *mcp.ServerSession,
	now time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return errStopping
	}
	customer := from.Customer
	known := s.of[customer]
	if len(known) < maxOfCustomer && s.count >= MaxSessions {
		return errManySessions
	}
	if s.of == nil {
		s.of, s.open = map[string][]*session{}, map[string]*session{}
	}
	if len(known) >= maxOfCustomer {
		oldest := known[0]
		for _, one := range known {
			if one.used.Before(oldest.used) {
				oldest = one
			}
		}
		s.end(customer, oldest)
	}
	made := &session{ServerSession: own, holder: from.Holder(), used: now}
	made.ctx, made.end = context.WithCancel(context.Background())
	s.of[customer], s.open[own.ID()] = append(s.of[customer], made), made
	s.count++
	s.behind.Go(func() {
		_ = own.Wait() // its result does not matter
		s.mu.Lock()
		defer s.mu.Unlock()
		s.drop(customer, own)
		if made.ctx.Err() == nil { // otherwise end removes it
			delete(s.open, own.ID())
			made.end()
		}
	})
	return nil
}

// end ends a session and its calls under way immediately. The library rejects answers of a closed
// session, so the calls are answered before it is closed.
func (s *sessions) end(customer string, own *session) {
	s.drop(customer, own.ServerSession)
	own.end()
	s.behind.Go(func() {
		own.messages.Wait()
		_ = own.Close()
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.open, own.ID())
	})
}

// endSession ends a session of the caller. It returns false if the caller has none with this id.
func (s *sessions) endSession(from *operation.Caller, id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	own := s.open[id]
	if own == nil || own.holder != from.Holder() || own.ctx.Err() != nil {
		return false
	}
	s.end(from.Customer, own)
	return true
}

// enter begins to answer a message of a session, unless the session has ended. An unknown id is
// left to the library.
func (s *sessions) enter(id string) (leave func(), ended bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	own := s.open[id]
	switch {
	case own == nil:
		return func() {}, false
	case own.ctx.Err() != nil:
		return nil, true
	}
	own.messages.Add(1)
	return own.messages.Done, false
}

// drop removes a session from the count. Further calls do nothing.
func (s *sessions) drop(customer string, own *mcp.ServerSession) {
	known := s.of[customer]
	for i, one := range known {
		if one.ServerSession != own {
			continue
		}
		s.count--
		if known = append(known[:i:i], known[i+1:]...); len(known) == 0 {
			delete(s.of, customer)
		} else {
			s.of[customer] = known
		}
		return
	}
}

// use records that a session is used and returns it; nil: it is unknown.
func (s *sessions) use(id string, now time.Time) *session {
	s.mu.Lock()
	defer s.mu.Unlock()
	own := s.open[id]
	if own != nil {
		own.used = now
	}
	return own
}

// size returns the number of sessions.
func (s *sessions) size() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.count
}

// close ends all sessions and waits for them.
func (s *sessions) close() {
	s.mu.Lock()
	s.ended = true
	for _, known := range s.of {
		for _, one := range known {
			s.behind.Go(func() { _ = one.Close() })
		}
	}
	s.mu.Unlock()
	s.behind.Wait()
}

// admit counts sessions. A call within a session ends with it.
func (g *Gateway) admit(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, request mcp.Request) (mcp.Result, error) {
		own, _ := request.GetSession().(*mcp.ServerSession)
		from, _ := callerOf(request)
		if own == nil || from == nil || own.ID() == "" {
			return next(ctx, method, request)
		}
		if method == "initialize" {
			if err := g.sessions.addSession(from, own, g.clock.Now()); err != nil {
				return nil, err
			}
		} else if used := g.sessions.use(own.ID(), g.clock.Now()); used != nil {
			calling, cancel := context.WithCancel(ctx)
			defer cancel()
			defer context.AfterFunc(used.ctx, cancel)()
			ctx = calling
		}
		return next(ctx, method, request)
	}
}
