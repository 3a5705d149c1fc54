package mailer

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/wneessen/go-mail"
)

// How the connection to the server is encrypted.
const (
	StartTLS = "starttls" // begins unencrypted; STARTTLS is required
	TLS      = "tls"      // from the first byte
	InClear  = "none"
)

// talkWithin bounds connecting, and each answer of the server.
const talkWithin = 30 * time.Second

// Server is an SMTP server and how to talk to it.
type Server struct {
	Address    string // HOST:PORT
	Encryption string // StartTLS, TLS or InClear
	User       string // "": no authentication
	Password   string
	RootCAs    *x509.CertPool // nil: the system's
	From       string         // the sender's address
}

// Check finds invalid settings.
func (s *Server) Check() error {
	_, port, err := net.SplitHostPort(s.Address)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	if err != nil {
		return errors.New("want HOST:PORT")
	}
	if err := mail.NewMsg().From(s.From); err != nil {
		return errors.New("the sender's address is none")
	}
	if s.Encryption == InClear && s.User != "" {
		return errors.New("a password is not sent in clear")
	}
	return nil
}

// dial connects. The caller closes the connection.
func (s *Server) dial(ctx context.Context) (*connection, error) {
	host, port, err := net.SplitHostPort(s.Address)
	if err != nil {
		return nil, err
	}
	number, err := strconv.Atoi(port)
	if err != nil {
		return nil, err
	}
	options := []mail.Option{mail.WithPort(number), mail.WithTimeout(talkWithin),
		mail.WithTLSConfig(&tls.Config{ServerName: host, RootCAs: s.RootCAs,
			MinVersion: tls.VersionTLS12})}
	switch s.Encryption {
	case TLS:
		options = append(options, mail.WithSSL())
	case InClear:
		options = append(options, mail.WithTLSPolicy(mail.NoTLS))
	default:
		options = append(options, mail.WithTLSPolicy(mail.TLSMandatory))
	}
	if s.User != "" {
		options = append(options, mail.WithSMTPAuth(mail.SMTPAuthAutoDiscover),
			mail.WithUsername(s.User), mail.WithPassword(s.Password))
	}
	client, err := mail.NewClient(host, options...)
	if err != nil {
		return nil, err
	}
	if err := client.DialWithContext(ctx); err != nil {
		return nil, fmt.Errorf("connect to the SMTP server: %w", err)
	}
	return &connection{client}, nil
}

type connection struct{ client *mail.Client }

// close ends the session. Errors do not matter: what was sent is sent.
func (c *connection) close() { _ = c.client.Close() }

// refusal is the server's refusal of one e-mail.
type refusal struct {
	error
	passing bool // the server may accept it later
}

// send hands an e-mail to the server. Its error is a refusal if it concerns only this e-mail.
func (c *connection) send(message *mail.Msg) error {
	err := c.client.Send(message)
	var told *mail.SendError
	switch {
	case err == nil || message.IsDelivered():
		return nil
	case errors.As(err, &told) && told.ErrorCode() >= 400 && told.ErrorCode() != 421 &&
		(told.Reason == mail.ErrSMTPRcptTo || told.Reason == mail.ErrSMTPData ||
			told.Reason == mail.ErrSMTPDataClose):
		return &refusal{err, told.ErrorCode() < 500}
	}
	return err
}
