package stripe

import (
	"io"
	"net/http"
)

const (
	maxAnswer      = 1 << 20 // bytes of an answer from Stripe
	maxConnections = 8       // to Stripe at once; more calls wait
)

// bounded limits how much of a response body is read.
type bounded struct{ *http.Transport }

func newTransport() bounded {
	own := http.DefaultTransport.(*http.Transport).Clone()
	own.MaxConnsPerHost, own.MaxIdleConnsPerHost = maxConnections, 1
	return bounded{own}
}

// RoundTrip implements http.RoundTripper.
func (b bounded) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := b.Transport.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	response.Body = struct {
		io.Reader
		io.Closer
	}{io.LimitReader(response.Body, maxAnswer), response.Body}
	return response, nil
}

// stay follows no redirects: Stripe's API sends none, and no other server may see our key.
func stay(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
