package cache_test

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"

	"shoal.dev/shoal/pkg/cache"
)

const (
	user     = "shoal"
	password = "p@ss/word"
	escaped  = "p%40ss%2Fword"
)

// securedMini returns a Redis with TLS and a sign-in, and the authorities that it needs.
func securedMini(t *testing.T) (*miniredis.Miniredis, *x509.CertPool) {
	t.Helper()
	server := httptest.NewUnstartedServer(nil)
	server.StartTLS()
	t.Cleanup(server.Close)
	trusted := x509.NewCertPool()
	trusted.AddCert(server.Certificate())
	mini, err := miniredis.RunTLS(&tls.Config{Certificates: server.TLS.Certificates})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(mini.Close)
	mini.RequireUserAuth(user, password)
	return mini, trusted
}

// TestSignIn: user and password work in the address and beside it, and over TLS.
func TestSignIn(t *testing.T) {
	mini, trusted := securedMini(t)
	for name, config := range map[string]cache.Config{
		"address": {Addr: "rediss://" + user + ":" + escaped + "@" + mini.Addr() + "/3"},
		"beside":  {Addr: "rediss://" + mini.Addr(), Username: user, Password: password},
		"instead": {Addr: "rediss://" + user + ":old@" + mini.Addr(), Password: password},
	} {
		config.RootCAs = trusted
		c := open(t, config)
		if err := c.Admitted(t.Context()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		c.Set(t.Context(), name, []byte("x"), time.Minute)
		if _, found := c.Get(t.Context(), name); !found || c.Counts().Failures > 0 {
			t.Errorf("%s: %+v", name, c.Counts())
		}
	}
	if keys := mini.DB(3).Keys(); len(keys) != 2 {
		t.Errorf("keys in database 3: %q", keys)
	}
}

// TestNotAdmitted: only causes that persist are errors, and no error contains the password.
func TestNotAdmitted(t *testing.T) {
	mini, trusted := securedMini(t)
	for name, c := range map[string]struct {
		config cache.Config
		says   string // "": admitted
	}{
		"wrong password": {cache.Config{Username: user, Password: password + "?",
			RootCAs: trusted}, "WRONGPASS"},
		"wrong user": {cache.Config{Username: "who", Password: password, RootCAs: trusted},
			"WRONGPASS"},
		"slower than calls": {cache.Config{Username: user, Password: password + "?",
			RootCAs: trusted, Timeout: time.Nanosecond}, "WRONGPASS"},
		"no password": {cache.Config{RootCAs: trusted}, "NOAUTH"},
		"unknown authority": {cache.Config{Username: user, Password: password},
			"unknown authority"},
		"nobody there": {cache.Config{Addr: "redis://127.0.0.1:1", Password: password}, ""},
	} {
		if c.config.Addr == "" {
			c.config.Addr = "rediss://" + mini.Addr()
		}
		var said bytes.Buffer
		c.config.Logger = slog.New(slog.NewTextHandler(&said, nil))
		opened := open(t, c.config)
		err := opened.Admitted(t.Context())
		for tries := 0; err == nil && c.says != "" && tries < 20; tries++ {
			err = opened.Admitted(t.Context()) // a busy machine may answer too late
		}
		if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: error %v, want one that says %q", name, err, c.says)
		}
		for range 10 { // until Redis counts as down, which is logged
			opened.Delete(t.Context(), "k")
		}
		if err := opened.Close(); err != nil {
			t.Error(err)
		}
		if text := said.String(); strings.Contains(text, password) ||
			!strings.Contains(text, "does not answer") {
			t.Errorf("%s: the log is %s", name, text)
		}
	}
}

// TestAddresses: errors about an address do not quote it.
func TestAddresses(t *testing.T) {
	for _, config := range []cache.Config{
		{},
		{Addr: "http://h:1"},
		{Addr: "redis://"},
		{Addr: "redis://u:" + password + "@h:1"}, // not escaped
		{Addr: "redis://u:1" + password + "@h:1"},
		{Addr: "redis://h:1/" + password},
		{Addr: "redis://h:1?dial_timeout=1s"},
		{Addr: "redis://h:1", RootCAs: x509.NewCertPool()},
		{Addr: "h:1", RootCAs: x509.NewCertPool()},
	} {
		_, err := cache.Open(config)
		if err == nil || config.Check() == nil || strings.Contains(err.Error(), "p@ss") ||
			strings.Contains(err.Error(), "/word") {
			t.Errorf("%s: error %v", config.Addr, err)
		}
	}
}
