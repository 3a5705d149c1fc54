package operation

import "github.com/valyala/fasthttp"

// A client may ask whether to send a body (RFC 9110, 10.1.1). Its call begins before that comes, so
// that it is told at once what the header alone refuses.

// begunKey is the user value of a request whose call has begun.
const begunKey = "begun"

// Begun is a call that waits for its body, and the source of that.
type Begun struct {
	rc    *fasthttp.RequestCtx
	wants chan struct{} // the call reads the body for the first time
	came  chan error    // it comes, or why it does not
	done  chan struct{} // the call has ended
	read  bool
	err   error
}

// Begin begins a call whose client asks. It returns when the call reads the body, and then has to
// be gone on with. It is nil when the call has ended with its answer, or there is no body.
func Begin(rc *fasthttp.RequestCtx, handle fasthttp.RequestHandler) (begun *Begun, status int) {
	if declared := rc.Request.Header.ContentLength(); declared <= 0 && declared != -1 {
		return nil, fasthttp.StatusContinue
	}
	b := &Begun{rc: rc, wants: make(chan struct{}), came: make(chan error),
		done: make(chan struct{})}
	rc.SetUserValue(begunKey, b)
	go func() {
		defer close(b.done)
		handle(rc)
	}()
	select {
	case <-b.wants:
		return b, fasthttp.StatusContinue
	case <-b.done:
		return nil, rc.Response.StatusCode()
	}
}

// Continue goes on with the call, and waits for its end. err says why the body does not come.
func (b *Begun) Continue(err error) {
	b.came <- err
	<-b.done
}

// Read implements io.Reader.
func (b *Begun) Read(p []byte) (int, error) {
	if !b.read {
		b.read = true
		b.wants <- struct{}{}
		b.err = <-b.came
	}
	if b.err != nil {
		return 0, b.err
	}
	return b.rc.RequestBodyStream().Read(p)
}
