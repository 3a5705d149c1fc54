package oidc

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4/json"

	"shoal.dev/shoal/pkg/egress"
	"shoal.dev/shoal/pkg/retry"
)

// When keys are fetched. A withdrawn key remains valid until the next fetch.
const (
	fetchEvery = 5 * time.Minute
	// askEvery is the least time between two fetches that tokens with unknown keys trigger. So
	// made-up tokens cannot make this service flood the issuer.
	askEvery = 10 * time.Second
	// keysFor is how long keys are used while the issuer is away. Its tokens do not live longer.
	keysFor = time.Hour
	// fetchTime bounds one fetch of both documents.
	fetchTime = 10 * time.Second
)

// Bounds of the documents, in bytes.
const (
	maxDiscovery = 256 << 10
	maxKeyBytes  = 256 << 10
)

// afterFailure is the pause between attempts while the issuer is away.
var afterFailure = retry.Backoff{First: time.Second, Most: 30 * time.Second}

// source holds the keys of an issuer. One goroutine, run, fetches them, and all others wait for it.
// So at most one attempt is in progress.
type source struct {
	config *Config
	wake   chan struct{} // capacity 1: somebody waits for an attempt

	mu        sync.Mutex
	keys      *keySet       // nil before the first successful attempt
	fetchedAt time.Time     // when keys were fetched
	askedAt   time.Time     // when a token last triggered an attempt
	waiting   chan struct{} // closed when the current or requested attempt ends; nil: none
	failure   error         // of the last attempt
	attempts  [2]int64      // failed and successful ones
}

func newSource(config *Config) *source {
	return &source{config: config, wake: make(chan struct{}, 1),
		failure: errors.New("they have not been fetched yet")}
}

// current returns the keys that tokens are checked with, nil if there are none.
func (s *source) current() *keySet {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.usable()
}

// usable is current for callers that hold the lock.
func (s *source) usable() *keySet {
	if s.config.Clock.Now().Sub(s.fetchedAt) > keysFor {
		return nil
	}
	return s.keys
}

func (s *source) state() State {
	s.mu.Lock()
	defer s.mu.Unlock()
	state := State{Reachable: s.failure == nil, Failed: s.attempts[0], Fetched: s.attempts[1]}
	if keys := s.usable(); keys != nil {
		state.Keys, state.Age = len(keys.keys), s.config.Clock.Now().Sub(s.fetchedAt)
	}
	return state
}

// refresh waits for keys that may be newer than had. It returns false if an attempt was too recent
// to expect newer ones. It fails if the fetch fails, or ctx ends first.
func (s *source) refresh(ctx context.Context, had *keySet) (bool, error) {
	s.mu.Lock()
	now := s.config.Clock.Now()
	if s.usable() != had {
		s.mu.Unlock()
		return true, nil
	}
	if s.waiting == nil {
		if !s.askedAt.IsZero() && now.Sub(s.askedAt) < askEvery {
			defer s.mu.Unlock()
			return false, s.failure
		}
		s.askedAt, s.waiting = now, make(chan struct{})
		s.wake <- struct{}{} // there is room: attempt drains it before it resets waiting
	}
	ended := s.waiting
	s.mu.Unlock()
	select {
	case <-ended:
		return true, nil
	case <-ctx.Done():
		return false, ctx.Err()
	}
}

// run fetches the keys until ctx ends.
func (s *source) run(ctx context.Context) {
	failures := 0
	for {
		pause := fetchEvery
		if err := s.attempt(ctx); err != nil {
			failures++
			pause = afterFailure.After(failures)
		} else {
			failures = 0
		}
		select {
		case <-ctx.Done():
			return
		case <-s.wake:
		case <-s.config.Clock.After(pause):
		}
	}
}

// attempt fetches the keys once, for all who wait.
func (s *source) attempt(ctx context.Context) error {
	s.mu.Lock()
	select {
	case <-s.wake:
	default:
	}
	if s.waiting == nil {
		s.waiting = make(chan struct{})
	}
	s.mu.Unlock()

	fetching, cancel := context.WithTimeout(ctx, fetchTime)
	defer cancel()
	keys, err := s.fetch(fetching)

	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.waiting)
	s.waiting = nil
	if ctx.Err() != nil {
		return err // our own shutdown says nothing about the issuer
	}
	s.note(err)
	if err == nil {
		s.keys, s.fetchedAt = keys, s.config.Clock.Now()
	}
	return err
}

// note records the result of an attempt, and logs changes for operators. The caller holds the lock.
func (s *source) note(err error) {
	log := s.config.Logger.With("issuer", s.config.Issuer)
	switch first := s.attempts == [2]int64{}; {
	case err != nil && (first || s.failure == nil):
		log.Warn("the issuer's keys cannot be fetched; its tokens are refused unless their keys "+
			"are known", "error", err)
	case err == nil && s.failure != nil:
		log.Info("the issuer's keys are fetched")
	}
	s.failure = err
	if err == nil {
		s.attempts[1]++
	} else {
		s.attempts[0]++
	}
}

// fetch gets the discovery document, then the keys that it names.
func (s *source) fetch(ctx context.Context) (*keySet, error) {
	document, err := s.get(ctx, strings.TrimSuffix(s.config.Issuer, "/")+
		"/.well-known/openid-configuration", maxDiscovery)
	if err != nil {
		return nil, fmt.Errorf("discovery: %w", err)
	}
	var discovered struct {
		Issuer    string `json:"issuer"`
		Keys      string `json:"jwks_uri"`
		Authorize text   `json:"authorization_endpoint"`
		Token     text   `json:"token_endpoint"`
		Person    text   `json:"userinfo_endpoint"`
		Methods   roles  `json:"token_endpoint_auth_methods_supported"`
	}
	if err := json.Unmarshal(document, &discovered); err != nil {
		return nil, fmt.Errorf("discovery: %w", err)
	}
	if discovered.Issuer != s.config.Issuer {
		return nil, fmt.Errorf("discovery: the document is of the issuer %.200q",
			discovered.Issuer)
	}
	at, err := url.Parse(discovered.Keys)
	if err != nil {
		return nil, errors.New("discovery: jwks_uri is no address")
	}
	if err := s.checkAddress(at); err != nil {
		return nil, fmt.Errorf("discovery: jwks_uri: %w", err)
	}
	document, err = s.get(ctx, discovered.Keys, maxKeyBytes)
	if err != nil {
		return nil, fmt.Errorf("keys: %w", err)
	}
	keys, err := parseKeys(document)
	if err != nil {
		return nil, err
	}
	keys.places = s.placesOf(string(discovered.Authorize), string(discovered.Token),
		string(discovered.Person), discovered.Methods)
	return keys, nil
}

// checkAddress refuses plain http, unless the issuer itself is on this machine.
func (s *source) checkAddress(at *url.URL) error {
	if at.User != nil {
		return errors.New("want an address without a user")
	}
	if at.Scheme == "http" && !strings.HasPrefix(s.config.Issuer, "http:") {
		return errors.New("want https://, as the issuer has")
	}
	return checkScheme(at)
}

// get returns a document of at most this many bytes. It follows no redirects: an issuer must be
// where it says it is.
func (s *source) get(ctx context.Context, address string, most int64) ([]byte, error) {
	response, err := s.config.Egress.Do(ctx, &egress.Request{URL: address, MaxBody: most,
		Private: true, Header: []egress.Field{{Name: "Accept", Value: "application/json"}}})
	if err != nil {
		return nil, err
	}
	defer response.Release()
	if response.Status != 200 {
		return nil, fmt.Errorf("it answers with the status %d", response.Status)
	}
	return append([]byte(nil), response.Body...), nil
}
