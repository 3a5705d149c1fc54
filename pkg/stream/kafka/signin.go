package kafka

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"

	segmentio "github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/sasl"
	"github.com/segmentio/kafka-go/sasl/plain"
	"github.com/segmentio/kafka-go/sasl/scram"
)

// SASL says how to sign in.
type SASL struct {
	Mechanism string // PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512
	User      string
	Password  string
}

// Check reports invalid settings without asking a broker. It never quotes the password.
func (s *SASL) Check() error {
	_, err := s.mechanism()
	return err
}

func (s *SASL) mechanism() (mechanism sasl.Mechanism, err error) {
	switch strings.ToUpper(s.Mechanism) {
	case "PLAIN":
		return plain.Mechanism{Username: s.User, Password: s.Password}, nil
	case "SCRAM-SHA-256":
		mechanism, err = scram.Mechanism(scram.SHA256, s.User, s.Password)
	case "SCRAM-SHA-512":
		mechanism, err = scram.Mechanism(scram.SHA512, s.User, s.Password)
	default:
		return nil, fmt.Errorf("the mechanism %q is none of PLAIN, SCRAM-SHA-256 and SCRAM-SHA-512",
			s.Mechanism)
	}
	if err != nil { // the error quotes the character
		return nil, errors.New("the user's name or password has a character that SCRAM " +
			"does not take")
	}
	return mechanism, nil
}

// refused reports whether the brokers reject us, or we do not trust them. It is false if they are
// merely away.
func refused(err error) bool {
	for _, code := range []segmentio.Error{segmentio.SASLAuthenticationFailed,
		segmentio.UnsupportedSASLMechanism,
		segmentio.IllegalSASLState, segmentio.TopicAuthorizationFailed,
		segmentio.ClusterAuthorizationFailed,
		segmentio.InvalidConfiguration, segmentio.PolicyViolation} {
		if errors.Is(err, code) {
			return true
		}
	}
	var untrusted *tls.CertificateVerificationError
	var network *net.OpError
	return errors.As(err, &untrusted) ||
		// TLS reports this if they do not trust us
		errors.As(err, &network) && network.Op == "remote error"
}

// unlessRefused turns several refusals in a row into an error for good. A single refusal may come
// from a broker that stopped in the middle of a sign-in.
func unlessRefused(try func(context.Context) error) func(context.Context) error {
	refusals := 0
	return func(ctx context.Context) error {
		err := try(ctx)
		if !refused(err) {
			refusals = 0
			// brokers that restart hang up, too
			if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
				err = fmt.Errorf("%w: the broker hangs up; does it want TLS or a sign-in, or not?",
					err)
			}
			return err
		}
		if refusals++; worthWarning(refusals) {
			return fmt.Errorf("%w: the brokers refuse: %w", errForGood, err)
		}
		return err
	}
}
