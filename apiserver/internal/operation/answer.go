package operation

import (
	"fmt"
	"io"
	"os"
	"reflect"
	"sync"
)

// spooledFrom is the size in bytes from which an answer waits for its client on disk. A client that
// does not read must not fill the memory.
const spooledFrom = 256 << 10

// send sends a whole answer. It writes a long one to an unnamed file first, in the customer's share
// of the disk.
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
		_ = waiting.Close() // drops the file
		return fmt.Errorf("spool an answer: %w", err)
	}
	x.rc.SetBodyStream(waiting, len(data))
	return nil
}

// spooledAnswer is read while it is sent. The server closes it then, or when the client is gone.
type spooledAnswer struct {
	io.Reader
	file   *os.File
	leave  func()
	closed sync.Once
}

// Close implements io.Closer. It may be called again, but gives its room back only once.
func (a *spooledAnswer) Close() (err error) {
	a.closed.Do(func() {
		defer a.leave()
		err = a.file.Close()
	})
	return err
}

// OrNone is an answer of type T, or no answer: 204 No Content.
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
