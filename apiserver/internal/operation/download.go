package operation

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log/slog"
	"runtime/debug"
)

// held fails writes once the caller's credential is revoked, or reading is no longer allowed.
type held struct {
	io.Writer
	holds func() error
	begun bool // a write was passed on
}

func (h *held) Write(p []byte) (int, error) {
	if err := h.holds(); err != nil {
		return 0, err
	}
	h.begun = true
	return h.Writer.Write(p)
}

// downloadBuffer is how many bytes are written at a time.
const downloadBuffer = 32 << 10

// download sends what answer.Write writes, on a goroutine that must not touch the request. bytes is
// the length, -1 if unknown. begins is false if the answer is an error instead.
func (x *exchange) download(answer Download, bytes int) (begins bool) {
	read, write := io.Pipe()
	log := x.Logger.With("operation", x.op.ID, "correlationId", x.id)
	ctx, cancel := context.WithTimeout(x.Work, x.op.Timeout)
	end := x.ended // nil: most answers of this operation are short
	checked := &held{Writer: write, holds: x.holds()}
	x.underway.addOne()
	go func() {
		defer x.underway.removeOne()
		defer cancel()
		if end != nil {
			defer end()
		}
		err := recovering(func() error {
			w := bufio.NewWriterSize(checked, downloadBuffer)
			if err := answer.Write(ctx, w); err != nil {
				return err
			}
			return w.Flush()
		})
		_ = write.CloseWithError(err) // never fails
		level := slog.LevelDebug
		if checked.begun && cutsOff(err) {
			level = slog.LevelWarn // the call itself was logged as a success
		}
		log.Log(ctx, level, "download ended", "error", err)
	}()
	begun := bufio.NewReader(read)
	if _, err := begun.Peek(1); err != nil && !errors.Is(err, io.EOF) {
		x.fail(err) // nothing was written yet, so the client can be told
		return false
	}
	x.rc.SetContentType(answer.ContentType)
	x.rc.Response.Header.Set("Cache-Control", "no-store")
	if answer.Foreign {
		x.rc.Response.Header.Set("X-Content-Type-Options", "nosniff")
		x.rc.Response.Header.Set("Content-Security-Policy", "default-src 'none'; sandbox")
	}
	if answer.Name != "" {
		x.rc.Response.Header.Set("Content-Disposition", `attachment; filename="`+answer.Name+`"`)
	}
	if answer.Cursor != "" {
		x.rc.Response.Header.Set("Shoal-Cursor", answer.Cursor)
	}
	// The server closes the pipe when the client is gone, and drops the connection when the pipe
	// ends with an error.
	x.rc.SetBodyStream(struct {
		io.Reader
		io.Closer
	}{begun, read}, bytes)
	return true
}

// cutsOff says whether an error ends a download before its end although its client still reads, and
// the server does not stop.
func cutsOff(err error) bool {
	return err != nil && !errors.Is(err, io.ErrClosedPipe) && !errors.Is(err, context.Canceled)
}

// recovering makes an error of a panic.
func recovering(run func() error) (err error) {
	defer func() {
		if value := recover(); value != nil {
			err = recovered(value, debug.Stack())
		}
	}()
	return run()
}
