package agents

import (
	"context"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"shoal.dev/shoal/pkg/fault"
)

// Bounds of sessions.
const (
	maxOfCustomer = 20
	// MaxSessions are of all customers together.
	MaxSessions = 4_096
)

// sessions are those that clients have begun. The library keeps them, ends idle ones, and tells
// nobody. So here is who has how many.
type sessions struct {
	mu     sync.Mutex
	of     map[string][]*session // by customer
	count  int
	ended  bool
	behind sync.WaitGroup
}

type session struct {
	*mcp.ServerSession
	used time.Time
}

var (
	errManySessions = fault.New(fault.Unavailable, "too many agents have a session here; try again "+
		"later")
	errStopping = fault.New(fault.Unavailable, "the server stops")
)

// addSession notes a new session. Of a customer that has too many the least used one ends.
func (s *sessions) addSession(customer string, own *mcp.ServerSession, now time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return errStopping
	}
	known := s.of[customer]
	if len(known) < maxOfCustomer && s.count >= MaxSessions {
		return errManySessions
	}
	if s.of == nil {
		s.of = map[string][]*session{}
	}
	if len(known) >= maxOfCustomer {
		oldest := known[0]
		for _, one := range known {
			if one.used.Before(oldest.used) {
				oldest = one
			}
		}
		s.drop(customer, oldest.ServerSession)
		s.behind.Go(func() { _ = oldest.Close() }) // it waits for the session's calls
	}
	s.of[customer] = append(s.of[customer], &session{own, now})
	s.count++
	s.behind.Go(func() {
		_ = own.Wait() // however it ended
		s.mu.Lock()
		defer s.mu.Unlock()
		s.drop(customer, own)
	})
	return nil
}

// drop takes a session from the count, once.
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

// use notes that a session was used.
func (s *sessions) use(customer string, own *mcp.ServerSession, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, one := range s.of[customer] {
		if one.ServerSession == own {
			one.used = now
		}
	}
}

// open is how many there are.
func (s *sessions) open() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.count
}

// close ends all, and waits until they have.
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

// admit counts the sessions of clients that have some.
func (g *Gateway) admit(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, request mcp.Request) (mcp.Result, error) {
		own, _ := request.GetSession().(*mcp.ServerSession)
		from, _ := callerOf(request)
		if own == nil || from == nil || own.ID() == "" {
			return next(ctx, method, request)
		}
		if method == "initialize" {
			if err := g.sessions.addSession(from.Customer, own, g.clock.Now()); err != nil {
				return nil, err
			}
		} else {
			g.sessions.use(from.Customer, own, g.clock.Now())
		}
		return next(ctx, method, request)
	}
}
