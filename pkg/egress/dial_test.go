package egress

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
)

// TestKeyExchange: a public request sends one key share, a private one also the post-quantum share.
// Hosts that support only another curve can be reached, too.
func TestKeyExchange(t *testing.T) {
	for name, test := range map[string]struct {
		private bool
		curves  []tls.CurveID // of the host
		want    tls.CurveID
	}{
		"public":       {want: tls.X25519},
		"private":      {private: true, want: tls.X25519MLKEM768},
		"old curve":    {curves: []tls.CurveID{tls.CurveP384}, want: tls.CurveP384},
		"private, old": {private: true, curves: []tls.CurveID{tls.CurveP256}, want: tls.CurveP256},
	} {
		t.Run(name, func(t *testing.T) {
			var got tls.CurveID
			server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter,
				r *http.Request) {
				got = r.TLS.CurveID
				io.WriteString(w, "hello")
			}))
			server.TLS = &tls.Config{CurvePreferences: test.curves}
			server.StartTLS()
			defer server.Close()
			roots := x509.NewCertPool()
			roots.AddCert(server.Certificate())
			c := newClient(t, Config{RootCAs: roots,
				Origins: map[string]string{"example.com": server.Listener.Addr().String()}})
			resp, err := c.Do(t.Context(),
				&Request{URL: "https://example.com/", Private: test.private})
			if err != nil {
				t.Fatal(err)
			}
			resp.Release()
			c.Close()
			if got != test.want {
				t.Errorf("keys were exchanged by %v, want %v", got, test.want)
			}
		})
	}
}
