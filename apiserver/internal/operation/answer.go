package operation

import (
	"fmt"
	"io"
	"os"
	"reflect"
	"sync"
)

// spooledFrom is how many bytes an answer has to wait for its client on disk: who does not take it
// must not fill the memory.
const spooledFrom = 256 << 10

// send sends a whole answer. A long one is brought to a file without a name first, in the
// customer's share of the disk.
func (x *exchange) send(data []byte) error {
	if len(data) < spooledFrom {
		x.rc.SetBody(data)
		return nil
	}
	n := int64(len(data))
	if err := x.spools.takeBytes(x.from.Customer, n,
		func() (uint64, bool) { return x.free(x.SpoolDir) }); err != nil {
		return err
	}
	leave := func() { x.spools.leave(x.from.Customer, n) }
	file, err := os.CreateTemp(x.SpoolDir, "answer-*")
	if err != nil {
		leave()
		return fmt.Errorf("spool an answer: %w", err)
	}
	waiting := &spooledAnswer{Reader: io.NewSectionReader(file, 0, n), file: file, leave: leave}
	if err = os.Remove(file.Name()); err == nil {
		_, err = file.Write(data)
	}
	if err != nil {
		_ = waiting.Close() // nothing of it is kept
		return fmt.Errorf("spool an answer: %w", err)
	}
	x.rc.SetBodyStream(waiting, len(data))
	return nil
}

// spooledAnswer is read while it is sent. The server closes it when the client has it, or is gone.
type spooledAnswer struct {
	io.Reader
	file   *os.File
	leave  func()
	closed sync.Once
}

// Close implements io.Closer. It may be called again, and gives back what was taken once.
func (a *spooledAnswer) Close() (err error) {
	a.closed.Do(func() {
		defer a.leave()
		err = a.file.Close()
	})
	return err
}

// OrNone is an answer of type T, or none, which is 204 No Content.
type OrNone[T any] struct{ Answer *T }

func (o OrNone[T]) given() any {
	if o.Answer == nil {
		return nil
	}
	return *o.Answer
}
func (OrNone[T]) shape() reflect.Type { return reflect.TypeFor[T]() }

// optional is an OrNone of any type.
type optional interface {
	given() any
	shape() reflect.Type
}
