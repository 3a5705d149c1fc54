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

// Check says what cannot work, without asking Redis. It never quotes an address, in which a
// password may stand.
func (c Config) Check() error {
	_, err := c.options()
	return err
}

// options are where Redis is and how to sign in there.
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

// parse is redis.ParseURL without the settings that are ours, and without errors that quote a
// password.
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

// Admitted asks once, for a second at most. It is an error when Redis refuses us or we do not trust
// it. Then the user or password is wrong, a right is missing, or a certificate is not good. It is
// nil when Redis does not answer, which is no reason not to start.
func (r *Redis) Admitted(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	err := r.client.Set(ctx, r.key("probe", r.places.process), 1, r.config.Lease).Err()
	var untrusted *tls.CertificateVerificationError
	if redis.IsAuthError(err) || redis.IsPermissionError(err) || errors.As(err, &untrusted) {
		return fmt.Errorf("cache: Redis refuses, or is not the one: %w", err)
	}
	return nil
}
