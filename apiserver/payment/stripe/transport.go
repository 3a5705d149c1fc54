package stripe

import (
	"io"
	"net/http"
)

const (
	maxAnswer      = 1 << 20 // bytes of an answer of Stripe's
	maxConnections = 8       // to Stripe at once; calls beyond them wait
)

// bounded reads no more of an answer than answers have.
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

// stay is the rule for redirects: Stripe's API sends none, and nobody else is told our key.
func stay(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
