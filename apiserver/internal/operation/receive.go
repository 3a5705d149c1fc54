package operation

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/zeebo/xxh3"

	"shoal.dev/shoal/pkg/fault"
)

const (
	// maxLarge is how many bodies of more than bodyLimit bytes are in memory at once.
	maxLarge = 2
	// maxReceived is the most bytes of a streamed body. It is kept on disk.
	maxReceived = 4 << 30
	// customerShare is how many large or streamed bodies of one customer are received or processed
	// at once.
	customerShare = 2
	// customerLarge is how many large bodies of one customer are in memory at once.
	customerLarge = 1
)

// DescribeBodies tells callers the rules for large or streamed bodies.
func DescribeBodies() string {
	p := usualPace()
	return fmt.Sprintf("A longer or streamed body may take as long as its call, if at least %d "+
		"bytes a second arrive in each %v of waiting, and no pause exceeds %v (else 408). Of "+
		"each customer %d such bodies are received at a time, and others wait. A streamed body "+
		"has at most %d GiB (else 413). These bodies are kept on disk until they are processed. "+
		"If their space is full, the call ends with 503 unavailable; if the disk itself is "+
		"full, with out_of_space.", p.least/int64(p.window/time.Second), p.window, p.stall,
		customerShare, maxReceived>>30)
}

// shares are each customer's places for something scarce. The zero value is ready to use.
type shares struct {
	mu   sync.Mutex
	held map[string]*share // of customers that hold or wait
}

type share struct {
	places chan struct{}
	users  int // that hold or wait
}

// takePlace waits for one of the customer's places, of which there are always as many. leave gives
// it back; call it once.
func (s *shares) takePlace(ctx context.Context, customer string, many int) (leave func(),
	err error) {
	s.mu.Lock()
	if s.held == nil {
		s.held = map[string]*share{}
	}
	own := s.held[customer]
	if own == nil {
		own = &share{places: make(chan struct{}, many)}
		s.held[customer] = own
	}
	own.users++
	s.mu.Unlock()
	forget := func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if own.users--; own.users == 0 {
			delete(s.held, customer)
		}
	}
	select {
	case own.places <- struct{}{}:
		return func() { <-own.places; forget() }, nil
	case <-ctx.Done():
		forget()
		return nil, ctx.Err()
	}
}

// read reads the whole body. It receives a large one to disk first, and takes a place in memory
// only afterwards, so that no call waits for another's sender.
func (x *exchange) read(ctx context.Context, limit int) ([]byte, error) {
	if limit <= bodyLimit || x.body.declared >= 0 && x.body.declared <= bodyLimit ||
		x.body.declared > int64(limit) {
		return x.body.all(limit)
	}
	x.body.paced(x.rc.Conn(), usualPace(), time.Now().Add(x.op.Timeout))
	received, err := x.receive(ctx, int64(limit), Verbatim)
	if err != nil {
		return nil, err
	}
	// First one of the customer's own places: the others of all are for other customers.
	leave, err := x.large.takePlace(ctx, x.from.Customer, customerLarge)
	if err != nil {
		return nil, err
	}
	x.after(leave)
	select {
	case x.places <- struct{}{}:
		x.after(func() { <-x.places })
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	whole, err := io.ReadAll(received)
	if err != nil {
		return nil, fmt.Errorf("read a body back: %w", err)
	}
	return whole, nil
}

// Verbatim is the Refine that keeps a body as it comes.
func Verbatim(to io.Writer, body io.Reader) error {
	_, err := io.Copy(to, body)
	return err
}

// receive writes what refine keeps of the body to an unnamed file, which is deleted with the call.
// While it receives, it holds only the customer's share.
func (x *exchange) receive(ctx context.Context, limit int64, refine Refine) (spooled, error) {
	if x.body.declared > limit {
		return nil, x.body.tooLarge(limit)
	}
	leave, err := x.shares.takePlace(ctx, x.from.Customer, customerShare)
	if err != nil {
		return nil, err
	}
	x.after(leave)
	file, err := os.CreateTemp(x.SpoolDir, "body-*")
	if err != nil {
		return nil, fmt.Errorf("receive a body: %w", err)
	}
	x.after(func() { _ = file.Close() }) // nothing more is written
	if err := os.Remove(file.Name()); err != nil {
		return nil, fmt.Errorf("receive a body: %w", err)
	}
	source := &reading{from: x.body, hash: xxh3.New()}
	to := &spool{Writer: file, take: func(n int64) error {
		free := func() (uint64, bool) { return x.free(x.SpoolDir) }
		err := x.spools.takeBytes(x.from.Customer, n, free)
		if left, known := free(); err != nil && known && left < uint64(x.spools.reserve+n) {
			return errDiskShort
		}
		return err
	}}
	x.after(func() { x.spools.leave(x.from.Customer, to.taken) })
	err = refine(to, io.LimitReader(source, limit+1))
	switch coded := (*fault.Error)(nil); {
	case source.err != nil:
		return nil, bodyFault(source.err)
	case x.body.taken > limit:
		return nil, x.body.tooLarge(limit)
	case errors.As(err, &coded):
		return nil, err
	case err != nil:
		return nil, fmt.Errorf("receive a body: %w", err)
	}
	if x.from.Call != nil && x.body.ended {
		x.from.Call.Body = source.hash.Sum64()
	}
	return io.NewSectionReader(file, 0, to.written), nil
}

// checkRepeated refuses a repeated call whose streamed body differs from the first one. The handler
// usually has not read it, since the answer was already there.
func (x *exchange) checkRepeated(ctx context.Context) (err error) {
	call := x.from.Call
	if call == nil || !call.Replayed || call.FirstBody == 0 {
		return nil
	}
	if call.Body == 0 {
		_, err = x.receive(ctx, maxReceived, func(_ io.Writer, body io.Reader) error {
			return Verbatim(io.Discard, body)
		})
	}
	if err == nil && call.Body != call.FirstBody {
		err = fault.Invalid(fault.IdempotencyReused, "Idempotency-Key",
			"the key was used for another body")
	}
	call.Replayed = err == nil
	return err
}

// reading hashes what is read, and keeps a reader's error apart from those of a writer.
type reading struct {
	from io.Reader
	hash *xxh3.Hasher
	err  error
}

// Read implements io.Reader.
func (r *reading) Read(p []byte) (int, error) {
	n, err := r.from.Read(p)
	_, _ = r.hash.Write(p[:n]) // a hash never fails
	if err != nil && !errors.Is(err, io.EOF) {
		r.err = err
	}
	return n, err
}

// after registers a function to run when the call has its answer.
func (x *exchange) after(do func()) { x.undo = append(x.undo, do) }

// readAdmitted reads the whole body, then asks Admit whether it may be processed. Scarce resources
// are held during work, never while waiting for a sender.
func (x *exchange) readAdmitted(ctx context.Context, limit int) ([]byte, error) {
	whole, err := x.read(ctx, limit)
	if err != nil || x.op.Admit == nil || len(whole) == 0 {
		return whole, err
	}
	leave, err := x.op.Admit()
	if err != nil {
		return nil, err
	}
	x.after(leave)
	return whole, nil
}
