// Package limits owns how often and how much at once a caller may ask (decision 6): token buckets per credential and
// class, and open streams per customer. It knows no operation and writes no answer.
package limits

import (
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/simplelru"
	"golang.org/x/time/rate"

	"shoal.dev/shoal/pkg/clock"
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
)

// Figure allows Count calls in each Per, and as many at once.
type Figure struct {
	Count int
	Per   time.Duration
}

// Defaults are the figures of decision 6.
func Defaults() map[Class]Figure {
	return map[Class]Figure{
		General:   {60, time.Minute},
		Read:      {600, time.Hour},
		SignIn:    {600, time.Minute},
		Anonymous: {120, time.Minute},
		Run:       {10, time.Minute},
		GroupRun:  {3, time.Minute},
		ListRun:   {6, time.Minute},
		Preview:   {10, time.Minute},
		Sample:    {10, time.Minute},
		Upload:    {10, time.Minute},
		Merge:     {2, time.Minute},
		Match:     {2, time.Minute},
		Harvest:   {6, time.Hour},
		TopUp:     {5, time.Minute},
		Mint:      {10, time.Hour},
	}
}

// Verdict answers a call. Limit 0 means that nothing limits it.
type Verdict struct {
	Allowed   bool
	Limit     int           // calls that the full bucket allows
	Remaining int           // calls that it allows now
	Reset     time.Duration // until it is full
	Retry     time.Duration // until the next call is allowed, when this one is not
}

// Limiter decides on calls. Implementations are safe for concurrent use.
type Limiter interface {
	// Take takes one call of a class from its holder's bucket.
	Take(holder string, class Class) Verdict
}

// Off is the switch: it allows everything.
type Off struct{}

// Take implements Limiter.
func (Off) Take(string, Class) Verdict { return Verdict{Allowed: true} }

// maxBuckets bounds memory to some 20 MB. The bucket that was longest unused goes first; a full one is equal to none.
const maxBuckets = 100_000

// Buckets is the Limiter of one process.
type Buckets struct {
	clock   clock.Clock
	figures map[Class]Figure

	mu      sync.Mutex
	buckets *simplelru.LRU
}

type bucketKey struct {
	holder string
	class  Class
}

// NewBuckets makes full buckets. Every class that is asked for must have a figure.
func NewBuckets(c clock.Clock, figures map[Class]Figure) *Buckets {
	buckets, err := simplelru.NewLRU(maxBuckets, nil)
	if err != nil {
		panic(fmt.Sprintf("limits: %v", err)) // the size is a positive constant
	}
	return &Buckets{clock: c, figures: figures, buckets: buckets}
}

// Take implements Limiter.
func (b *Buckets) Take(holder string, class Class) Verdict {
	figure, limited := b.figures[class]
	if !limited {
		return Verdict{Allowed: true}
	}
	now := b.clock.Now()
	bucket := b.bucket(bucketKey{holder, class}, figure)
	v := Verdict{Allowed: bucket.AllowN(now, 1), Limit: figure.Count}
	tokens := bucket.TokensAt(now)
	perToken := figure.Per / time.Duration(figure.Count)
	v.Remaining = max(0, int(math.Floor(tokens)))
	v.Reset = time.Duration((float64(figure.Count) - tokens) * float64(perToken))
	if !v.Allowed {
		v.Retry = time.Duration((1 - tokens) * float64(perToken))
	}
	return v
}

func (b *Buckets) bucket(key bucketKey, f Figure) *rate.Limiter {
	b.mu.Lock()
	defer b.mu.Unlock()
	if known, ok := b.buckets.Get(key); ok {
		return known.(*rate.Limiter)
	}
	fresh := rate.NewLimiter(rate.Every(f.Per/time.Duration(f.Count)), f.Count)
	b.buckets.Add(key, fresh)
	return fresh
}

// MaxStreams is how many streams a customer may have open.
const MaxStreams = 10

// Streams counts open streams. Its zero value is ready; most is MaxStreams unless Unbounded.
type Streams struct {
	Unbounded bool

	mu   sync.Mutex
	open map[string]int
}

// Total is how many streams are open, over all customers.
func (s *Streams) Total() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	total := 0
	for _, open := range s.open {
		total += open
	}
	return total
}

// Open counts one more stream of a customer, unless there are too many. What it returns ends the stream, and is nil
// when it was refused.
func (s *Streams) Open(customer string) (end func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open[customer] >= MaxStreams && !s.Unbounded {
		return nil
	}
	if s.open == nil {
		s.open = map[string]int{}
	}
	s.open[customer]++
	return sync.OnceFunc(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.open[customer]--; s.open[customer] == 0 {
			delete(s.open, customer)
		}
	})
}
