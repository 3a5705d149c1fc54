// Package limits owns how often and how much at once a caller may ask (decision 6). It has the
// classes of calls, their figures, and how many streams a customer may open. It knows no operation,
// writes no answer and counts nothing: pkg/cache does, for one process or for all of them together.
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

// Class is a kind of call that has a bucket of its own.
type Class string

// The classes. Unlimited calls have no bucket.
const (
	Unlimited Class = ""
	General   Class = "general"
	Read      Class = "read"
	SignIn    Class = "sign-in"   // instead of General and Read for sign-in credentials
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
	Agents    Class = "agents" // messages to the agent gateway, beside the calls that they make
	// SelfRead counts instead of Read for the self-hosting customer (decision 64). It has no figure
	// unless told.
	SelfRead Class = "self-read"
	// Settings are the calls by which operators look at figures and set them. Theirs is always the
	// same: no figure keeps operators from taking it back.
	Settings Class = "settings"
)

// Classes are all that may have a figure, in alphabetical order.
func Classes() []Class {
	classes := append(slices.Collect(maps.Keys(Defaults())), SelfRead)
	slices.Sort(classes)
	return classes
}

// Figure allows Count calls in each Per, and as many at once.
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

// Verdict answers a call. Limit 0 means that nothing limits it.
type Verdict = cache.Verdict

// Limiter decides on calls. Implementations are safe for concurrent use.
type Limiter interface {
	// TakeCall takes one call of a class from its holder's bucket, and from its customer's when
	// there is one. The verdict is that of the bucket which binds.
	TakeCall(ctx context.Context, holder, customer string, class Class) Verdict
}

// Off is the switch: it allows everything.
type Off struct{}

// TakeCall implements Limiter.
func (Off) TakeCall(context.Context, string, string, Class) Verdict {
	return Verdict{Allowed: true}
}

// Buckets is the Limiter by figures. A class without one is not limited.
type Buckets struct {
	Cache   cache.Limiter
	Figures map[Class]Figure
	// Customers are the figures of a customer's credentials together; a class without one has
	// CustomerFactor times its own.
	Customers map[Class]Figure
	// Set are the operators' figures of this moment, which win; nil: there are none.
	Set func() *Set
}

// Set are figures that take the place of others, by class.
type Set struct{ Figures, Customers map[Class]Figure }

// figures are those of a class as they are now: a credential's, and a customer's of all its
// credentials together.
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

// CustomerFactor is how many times a credential's figure all credentials of a customer have
// together (decision 55).
const CustomerFactor = 10

// TakeCall implements Limiter.
func (b *Buckets) TakeCall(ctx context.Context, holder, customer string, class Class) Verdict {
	figure, together, limited := b.figures(class)
	if !limited {
		return Verdict{Allowed: true}
	}
	own := b.Cache.TakeCall(ctx, string(class)+" "+holder, figure)
	if !own.Allowed || customer == "" {
		return own // a refused call costs the customer nothing
	}
	all := b.Cache.TakeCall(ctx, string(class)+" customer "+customer, together)
	if !all.Allowed || all.Remaining < own.Remaining {
		return all
	}
	return own
}

// MaxStreams is how many streams a customer may have open.
const MaxStreams = 10

// Streams counts open streams, of a customer over all servers, and altogether of this one.
type Streams struct {
	Cache     cache.Limiter
	Unbounded bool // a customer may have any number

	open atomic.Int64
}

// Total is how many streams this server has open, over all customers.
func (s *Streams) Total() int { return int(s.open.Load()) }

// Open counts one more stream of a customer, unless there are too many. What it returns ends the
// stream, and is nil when it was refused.
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
