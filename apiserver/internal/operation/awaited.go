package operation

import "github.com/valyala/fasthttp"

// A client may ask before it sends a body (Expect: 100-continue, RFC 9110, 10.1.1). Its call begins
// before the body comes, so refusals that need only the header are sent at once.

// begunKey is the user value that holds the Begun of a request.
const begunKey = "begun"

// Begun is a call that has started before its body, and the reader of that body.
type Begun struct {
	rc    *fasthttp.RequestCtx
	wants chan struct{} // sent to when the call first reads the body
	came  chan error    // nil when the body comes, else why it does not
	done  chan struct{} // the call has ended
	read  bool
	err   error
}

// Begin begins a call whose client asks first. It returns once the call reads the body, and the
// caller must Continue it. begun is nil if the call has ended or has no body.
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

// Continue resumes the call and waits for its end. err says why the body does not come.
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
