package cache

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/redis/go-redis/v9"
)

// Check reports settings that cannot work, without asking Redis. It never quotes an address, which
// may contain a password.
func (c Config) Check() error {
	_, err := c.options()
	return err
}

// options returns where Redis is and how to sign in.
func (c Config) options() (*redis.Options, error) {
	if c.Addr == "" {
		return nil, errors.New("cache: no address of Redis")
	}
	options := &redis.Options{Addr: c.Addr}
	if strings.Contains(c.Addr, "://") {
		var err error
		if options, err = parse(c.Addr); err != nil {
			return nil, err
		}
	}
	if c.Username != "" {
		options.Username = c.Username
	}
	if c.Password != "" {
		options.Password = c.Password
	}
	switch {
	case c.RootCAs != nil && options.TLSConfig == nil:
		return nil, errors.New("cache: authorities go with an address that begins with rediss://")
	case c.RootCAs != nil:
		options.TLSConfig.RootCAs = c.RootCAs
	}
	return options, nil
}

// parse is redis.ParseURL, but refuses settings in the address and never quotes a password in an
// error.
func parse(address string) (*redis.Options, error) {
	parsed, err := url.Parse(address)
	if err == nil && (parsed.Scheme == "redis" || parsed.Scheme == "rediss") && parsed.Host != "" &&
		parsed.RawQuery == "" {
		if options, err := redis.ParseURL(address); err == nil {
			return options, nil
		}
	}
	return nil, errors.New("cache: want HOST:PORT, redis://USER:PASSWORD@HOST:PORT/DATABASE or " +
		"rediss://… " +
		"(with %XX for what is no letter or digit in a password)")
}

// Admitted sends one request and waits at most a second. It fails if Redis refuses us or we do not
// trust it: a wrong user or password, a missing right, or a bad certificate. It is nil if Redis
// does not answer: that must not prevent a start.
func (r *Redis) Admitted(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	// A sign-in may take this long as well: a late refusal must not look like silence.
	err := r.client.WithTimeout(dialTimeout).Set(ctx, r.key("probe", r.places.process), 1,
		r.config.Lease).Err()
	var untrusted *tls.CertificateVerificationError
	if redis.IsAuthError(err) || redis.IsPermissionError(err) || errors.As(err, &untrusted) {
		return fmt.Errorf("cache: Redis refuses, or is not the one: %w", err)
	}
	return nil
}
