// Package limits decides how often and how much at once a caller may call (decision 6). It has the
// classes of calls, their figures, and how many streams a customer may open. It knows no operation
// and writes no answer. Package cache does the counting, for one process or all.
package limits

import (
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"shoal.dev/shoal/pkg/cache"
)

// Class is a kind of call with its own bucket.
type Class string

// The classes of calls. Unlimited calls have no bucket.
const (
	Unlimited Class = ""
	General   Class = "general"
	Read      Class = "read"
	SignIn    Class = "sign-in"   // replaces General and Read for sign-in credentials
	Anonymous Class = "anonymous" // calls without a valid credential, per address
	Run       Class = "run"
	GroupRun  Class = "group-run"
	ListRun   Class = "list-run"
	Preview   Class = "preview"
	Sample    Class = "sample"
	Upload    Class = "upload"
	Merge     Class = "merge"
	Match     Class = "match"
	Harvest   Class = "harvest"
	TopUp     Class = "top-up"
	Mint      Class = "mint"
	Agents    Class = "agents" // messages to the agent gateway, in addition to the calls they make
	// SelfRead replaces Read for the self-hosting customer (decision 64). It has no default figure.
	SelfRead Class = "self-read"
	// Settings are the calls by which operators read and set figures. Their figure is fixed, so no
	// figure can keep operators from undoing it.
	Settings Class = "settings"
)

// Classes are all classes that may have a figure, in alphabetical order.
func Classes() []Class {
	classes := append(slices.Collect(maps.Keys(Defaults())), SelfRead)
	slices.Sort(classes)
	return classes
}

// Figure allows Count calls per Per, and that many at once.
type Figure = cache.Limit

// Defaults are the figures of decision 6.
func Defaults() map[Class]Figure {
	return map[Class]Figure{
		General:   perMinute(60),
		Read:      perHour(600),
		SignIn:    perMinute(600),
		Anonymous: perMinute(120),
		Run:       perMinute(10),
		GroupRun:  perMinute(3),
		ListRun:   perMinute(6),
		Preview:   perMinute(10),
		Sample:    perMinute(10),
		Upload:    perMinute(10),
		Merge:     perMinute(2),
		Match:     perMinute(2),
		Harvest:   perHour(6),
		TopUp:     perMinute(5),
		Mint:      perHour(10),
		Agents:    perMinute(300),
	}
}

func perMinute(count int) Figure { return Figure{Count: count, Per: time.Minute} }

func perHour(count int) Figure { return Figure{Count: count, Per: time.Hour} }

// Verdict is the answer to a call. With Limit 0 the call is not limited.
type Verdict = cache.Verdict

// Limiter decides on calls. Implementations are safe for concurrent use.
type Limiter interface {
	// TakeCall takes one call of a class from the holder's bucket, and from the customer's if
	// given. It returns the verdict of the stricter bucket.
	TakeCall(ctx context.Context, holder, customer string, class Class) Verdict
}

// Off is a Limiter that allows everything.
type Off struct{}

// TakeCall implements Limiter.
func (Off) TakeCall(context.Context, string, string, Class) Verdict {
	return Verdict{Allowed: true}
}

// Buckets is a Limiter with figures. It does not limit classes without one.
type Buckets struct {
	Cache   cache.Limiter
	Figures map[Class]Figure
	// Customers are the figures for all credentials of a customer together. A class without one
	// gets CustomerFactor times its own figure.
	Customers map[Class]Figure
	// Set returns the operators' current figures, which take precedence; nil: none.
	Set func() *Set
}

// Set are figures that replace others, by class.
type Set struct{ Figures, Customers map[Class]Figure }

// figures are a class's current figures: one for a credential, and one for all credentials of a
// customer together.
func (b *Buckets) figures(class Class) (own, together Figure, limited bool) {
	if class == Settings {
		own = perMinute(60)
		return own, own, true
	}
	var set Set
	if b.Set != nil {
		set = *b.Set()
	}
	if own, limited = set.Figures[class]; !limited {
		if own, limited = b.Figures[class]; !limited {
			return Figure{}, Figure{}, false
		}
	}
	var told bool
	if together, told = set.Customers[class]; !told {
		together, told = b.Customers[class]
	}
	if !told {
		together = Figure{Count: CustomerFactor * own.Count, Per: own.Per}
	}
	return own, together, true
}

// CustomerFactor is how many times a credential's figure all credentials of a customer get together
// (decision 55).
const CustomerFactor = 10

// TakeCall implements Limiter.
func (b *Buckets) TakeCall(ctx context.Context, holder, customer string, class Class) Verdict {
	figure, together, limited := b.figures(class)
	if !limited {
		return Verdict{Allowed: true}
	}
	own := b.Cache.TakeCall(ctx, string(class)+" "+holder, figure)
	if !own.Allowed || customer == "" {
		return own // a refused call does not count for the customer
	}
	all := b.Cache.TakeCall(ctx, string(class)+" customer "+customer, together)
	if !all.Allowed || all.Remaining < own.Remaining {
		return all
	}
	return own
}

// MaxStreams is how many streams a customer may have open.
const MaxStreams = 10

// Streams counts open streams: per customer over all servers, and in total on this server.
type Streams struct {
	Cache     cache.Limiter
	Unbounded bool // a customer may have any number

	open atomic.Int64
}

// Total is how many streams this server has open, over all customers.
func (s *Streams) Total() int { return int(s.open.Load()) }

// Open counts one more stream of a customer. It returns the function that ends the stream, nil if
// the customer has too many.
func (s *Streams) Open(ctx context.Context, customer string) (end func()) {
	leave := func() {}
	if !s.Unbounded {
		leave = s.Cache.Enter(ctx, "streams "+customer, MaxStreams)
	}
	if leave == nil {
		return nil
	}
	s.open.Add(1)
	return sync.OnceFunc(func() {
		s.open.Add(-1)
		leave()
	})
}
