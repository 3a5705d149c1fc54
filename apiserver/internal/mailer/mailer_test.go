package mailer_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	"net"
	"net/mail"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"

	"shoal.dev/shoal/apiserver/internal/mailer"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/controlplane/client/clienttest"
	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/work"
)

// sink is an SMTP server that keeps what it gets.
type sink struct {
	address string
	roots   *x509.CertPool

	mu     sync.Mutex
	got    []string // whole e-mails
	refuse error    // for each recipient
	cut    int      // connections are cut after this many e-mails; 0: never
	poison string   // recipients with this text break the connection; "": none
	away   bool     // it accepts no connections
	user   string   // who signed in
}

type session struct {
	*sink
	conn *smtp.Conn
}

func (s session) AuthMechanisms() []string { return []string{sasl.Plain} }

func (s session) Auth(string) (sasl.Server, error) {
	return sasl.NewPlainServer(func(_, user, password string) error {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.user = user + ":" + password
		return nil
	}), nil
}

func (s session) Mail(string, *smtp.MailOptions) error { return nil }

func (s session) Rcpt(to string, _ *smtp.RcptOptions) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.poison != "" && strings.Contains(to, s.poison) {
		return s.conn.Conn().Close()
	}
	return s.refuse
}

func (s session) Data(r io.Reader) error {
	data, err := io.ReadAll(r)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.got = append(s.got, string(data))
	if len(s.got) == s.cut {
		s.away = true
		return &smtp.SMTPError{Code: 421, Message: "going down"}
	}
	return err
}

func (session) Reset()        {}
func (session) Logout() error { return nil }

func (s *sink) mails() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.got...)
}

func (s *sink) refuses(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refuse = err
}

// newSink serves until the test ends.
func newSink(t *testing.T, encryption string) *sink {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &sink{address: listener.Addr().String(), roots: x509.NewCertPool()}
	s.roots.AddCert(certificate)
	server := smtp.NewServer(smtp.BackendFunc(func(c *smtp.Conn) (smtp.Session, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.away {
			return nil, &smtp.SMTPError{Code: 421, Message: "going down"}
		}
		return session{s, c}, nil
	}))
	server.Domain = "sink.test"
	if encryption != mailer.InClear {
		server.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12,
			Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}
	}
	if encryption == mailer.TLS {
		listener = tls.NewListener(listener, server.TLSConfig)
	}
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(listener) })
	t.Cleanup(func() {
		_ = server.Close()
		_ = listener.Close() // the server only closes it if it has begun to serve
		serving.Wait()
	})
	return s
}

// post is a mailer with a control plane whose customers have addresses.
type post struct {
	*testing.T
	*sink
	client *clienttest.Client
	clock  *clock.Manual
	ids    ids.Sequence
	server mailer.Server
	kill   func() // called after sending an e-mail, before it is recorded
	link   func(ids.ID) string
	logs   bytes.Buffer
}

func newPost(t *testing.T, encryption string) *post {
	t.Helper()
	p := &post{T: t, sink: newSink(t, encryption), kill: func() {},
		clock: clock.NewManual(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))}
	p.client = clienttest.New(t, p.clock)
	p.server = mailer.Server{Address: p.address, Encryption: encryption, RootCAs: p.roots,
		From: "shoal@shoal.test"}
	p.client.Must(t, client.EnqueueWork{ID: p.ids.New(), Kind: work.Email, Once: true})
	p.customer("ann")
	return p
}

func (p *post) customer(ref string) {
	p.client.Must(p, client.OpenCustomer{Customer: ref, Entry: p.ids.New()})
	p.client.Must(p, client.SignUp{Customer: ref, Email: ref + "@shop.test", Firstname: ref,
		Lastname: "S"})
}

// happens makes a key for a customer, who is told by e-mail.
func (p *post) happens(customer string) {
	id := p.ids.New()
	p.client.Must(p, client.MintKey{ID: id, Customer: customer, Prefix: id.String()[17:],
		Name: "<key> & " + id.String(), Scope: model.ScopeUser})
}

var errKilled = errors.New("killed")

// step takes one step of the work; a kill ends it midway.
func (p *post) step() (outcome work.Outcome, err error) {
	p.Helper()
	defer func() {
		if r := recover(); r != nil {
			err = errKilled
		}
	}()
	kind := mailer.Kind(mailer.Config{Server: p.server, Client: p.client, Clock: p.clock,
		Link:   p.link,
		Logger: slog.New(slog.NewTextHandler(&p.logs, nil)), Point: func(string) { p.kill() }})
	return kind.Step(context.Background(), work.Item{})
}

func (p *post) must() {
	p.Helper()
	if _, err := p.step(); err != nil {
		p.Fatal(err)
	}
}

func (p *post) waiting() (n int) {
	p.client.View().MailsDue(func(*client.Mail) bool { n++; return true })
	return n
}

func parse(t *testing.T, text string) (head mail.Header, plain, html string) {
	t.Helper()
	message, err := mail.ReadMessage(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	_, params, err := mime.ParseMediaType(message.Header.Get("Content-Type"))
	if err != nil {
		t.Fatal(err)
	}
	parts := multipart.NewReader(message.Body, params["boundary"])
	var bodies []string
	for range 2 {
		part, err := parts.NextRawPart()
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(quotedprintable.NewReader(part))
		if err != nil {
			t.Fatal(err)
		}
		bodies = append(bodies, string(body))
	}
	return message.Header, bodies[0], bodies[1]
}

func id(t *testing.T, text string) string {
	t.Helper()
	head, _, _ := parse(t, text)
	return head.Get("Message-ID")
}

// TestEachEncryption: an e-mail comes as text and as HTML, with and without a name.
func TestEachEncryption(t *testing.T) {
	for _, encryption := range []string{mailer.StartTLS, mailer.TLS, mailer.InClear} {
		t.Run(encryption, func(t *testing.T) {
			p := newPost(t, encryption)
			if encryption != mailer.InClear {
				p.server.User, p.server.Password = "shoal", "secret"
			}
			p.happens("ann")
			p.must()
			if len(p.mails()) != 0 {
				t.Fatal("sent before its time")
			}
			p.clock.Advance(time.Minute)
			p.must()
			p.must()
			if len(p.mails()) != 1 || p.waiting() != 0 {
				t.Fatalf("%d e-mails, %d wait", len(p.mails()), p.waiting())
			}
			head, plain, html := parse(t, p.mails()[0])
			if head.Get("To") != "<ann@shop.test>" || head.Get("From") != "<shoal@shoal.test>" ||
				!strings.HasSuffix(head.Get("Message-ID"), "@shoal.test>") ||
				head.Get("Auto-Submitted") != "auto-generated" ||
				!strings.Contains(head.Get("Date"), "02 Jan 2026 03:04:05") {
				t.Errorf("head: %v", head)
			}
			if !strings.Contains(plain, `The API key "<key> & `) ||
				!strings.Contains(plain, "revoke it at once") || strings.Contains(plain, "</p>") ||
				!strings.Contains(html, "&lt;key&gt; &amp; ") || !strings.Contains(html, "</p>") {
				t.Errorf("text: %s\nHTML: %s", plain, html)
			}
			if encryption != mailer.InClear && p.user != "shoal:secret" {
				t.Errorf("signed in: %q", p.user)
			}
		})
	}
}

func TestNothingIsSentToWhoIsNotTheServer(t *testing.T) {
	p := newPost(t, mailer.StartTLS)
	p.happens("ann")
	p.clock.Advance(time.Minute)
	p.server.RootCAs = nil
	if _, err := p.step(); err == nil || p.waiting() != 1 {
		t.Errorf("an unknown authority: %v", err)
	}
	clear := newPost(t, mailer.InClear)
	clear.happens("ann")
	clear.clock.Advance(time.Minute)
	clear.server.Encryption = mailer.StartTLS
	if _, err := clear.step(); err == nil || len(clear.mails()) != 0 || clear.waiting() != 1 {
		t.Errorf("no STARTTLS: %v", err)
	}
}

// TestAFloodIsOneMail: a minute's events are one e-mail, and so are those of the next hour.
func TestAFloodIsOneMail(t *testing.T) {
	p := newPost(t, mailer.InClear)
	for range 100 {
		p.happens("ann")
	}
	p.clock.Advance(time.Minute)
	p.must()
	if len(p.mails()) != 1 {
		t.Fatalf("%d e-mails", len(p.mails()))
	}
	head, plain, _ := parse(t, p.mails()[0])
	if subject := head.Get("Subject"); !strings.HasSuffix(subject, ", and 99 more") ||
		strings.Count(plain, "- 2026-01-02 03:04 UTC") != 10 ||
		!strings.Contains(plain, "There are 90 more of them.") {
		t.Errorf("%s: %s", subject, plain)
	}
	for range 59 {
		p.happens("ann")
		p.clock.Advance(time.Minute)
		p.must()
	}
	if len(p.mails()) != 1 {
		t.Fatalf("%d e-mails within the hour", len(p.mails()))
	}
	p.clock.Advance(time.Minute)
	p.must()
	if len(p.mails()) != 2 || p.waiting() != 0 {
		t.Fatalf("%d e-mails in all", len(p.mails()))
	}
	if head, _, _ := parse(t, p.mails()[1]); !strings.HasSuffix(head.Get("Subject"), "58 more") {
		t.Error(head.Get("Subject"))
	}
}

// TestKilledBetweenSendingAndNoting kills the sender after each e-mail in turn, while more happens.
// No e-mail is lost. A kill repeats at most one, with the same id and content.
func TestKilledBetweenSendingAndNoting(t *testing.T) {
	const customers = 4
	for at := 1; at <= customers; at++ {
		t.Run(fmt.Sprint(at), func(t *testing.T) {
			p := newPost(t, mailer.InClear)
			for n := range customers - 1 {
				p.customer(fmt.Sprint("customer-", n))
			}
			everyone := func() {
				p.happens("ann")
				for n := range customers - 1 {
					p.happens(fmt.Sprint("customer-", n))
				}
			}
			everyone()
			p.clock.Advance(time.Minute)
			sent := 0
			p.kill = func() {
				if sent++; sent == at {
					panic(errKilled)
				}
			}
			if _, err := p.step(); !errors.Is(err, errKilled) {
				t.Fatalf("not killed: %v", err)
			}
			everyone() // joins nothing that was sent
			p.must()
			seen, subjects := map[string]int{}, map[string]string{}
			for _, text := range p.mails() {
				head, _, _ := parse(t, text)
				name := head.Get("Message-ID")
				if before, known := subjects[name]; known && before != head.Get("Subject") {
					t.Errorf("%s is %q and %q", name, before, head.Get("Subject"))
				}
				subjects[name] = head.Get("Subject")
				if seen[name]++; seen[name] > 2 {
					t.Errorf("%s came %d times", name, seen[name])
				}
			}
			if len(seen) != customers || p.waiting() != customers {
				t.Errorf("%d e-mails, and %d wait", len(seen), p.waiting())
			}
			p.clock.Advance(time.Hour)
			p.must()
			if len(p.mails()) != at+2*customers || p.waiting() != 0 {
				t.Errorf("%d in all, and %d wait", len(p.mails()), p.waiting())
			}
		})
	}
}

// TestRefusals: refused e-mails are dropped, deferred ones tried eight times in about a day.
func TestRefusals(t *testing.T) {
	p := newPost(t, mailer.InClear)
	p.happens("ann")
	p.clock.Advance(time.Minute)
	p.refuses(&smtp.SMTPError{Code: 550, Message: "no such mailbox"})
	p.must()
	if p.waiting() != 0 || !strings.Contains(p.logs.String(), "refused for good") {
		t.Errorf("%d wait: %s", p.waiting(), p.logs.String())
	}
	p.happens("ann")
	p.clock.Advance(2 * time.Hour)
	p.refuses(&smtp.SMTPError{Code: 450, Message: "busy"})
	begun, tries := p.clock.Now(), 0
	for ; p.waiting() > 0 && tries < 20; tries++ {
		p.must()
		p.client.View().MailsDue(func(m *client.Mail) bool {
			p.clock.Advance(time.UnixMilli(m.At).Sub(p.clock.Now()))
			return false
		})
	}
	took := p.clock.Now().Sub(begun)
	if tries != 8 || took < 10*time.Hour || took > 30*time.Hour {
		t.Errorf("%d tries in %s", tries, took)
	}
	p.refuses(nil)
	p.happens("ann")
	p.clock.Advance(time.Minute)
	p.must()
	if len(p.mails()) != 1 {
		t.Errorf("%d e-mails", len(p.mails()))
	}
}

// TestWhatCannotBeSent holds up nobody, such as an address that the library refuses.
func TestWhatCannotBeSent(t *testing.T) {
	p := newPost(t, mailer.InClear)
	p.client.Must(t, client.OpenCustomer{Customer: "bob", Entry: p.ids.New()})
	p.client.Must(t, client.SignUp{Customer: "bob", Email: "no address", Firstname: "B",
		Lastname: "S"})
	p.happens("bob")
	p.happens("ann")
	p.clock.Advance(time.Minute)
	p.must()
	if len(p.mails()) != 1 || p.waiting() != 0 ||
		!strings.Contains(p.logs.String(), "refused for good") {
		t.Errorf("%d e-mails, %d wait: %s", len(p.mails()), p.waiting(), p.logs.String())
	}
}

// TestWhoHasNoAddress: customers without an address are only told in the application.
func TestWhoHasNoAddress(t *testing.T) {
	p := newPost(t, mailer.InClear)
	p.client.Must(t, client.OpenCustomer{Customer: "bob", Entry: p.ids.New()})
	p.happens("bob")
	p.clock.Advance(time.Hour)
	p.must()
	if len(p.mails()) != 0 || p.client.View().Inbox("bob").Unread != 1 {
		t.Errorf("%d e-mails", len(p.mails()))
	}
}

func TestServersThatCannotBe(t *testing.T) {
	good := mailer.Server{Address: "mail.test:587", From: "a@b.test",
		Encryption: mailer.StartTLS, User: "u"}
	if err := good.Check(); err != nil {
		t.Error(err)
	}
	for _, change := range []func(s *mailer.Server){
		func(s *mailer.Server) { s.Address = "mail.test" },
		func(s *mailer.Server) { s.Address = "mail.test:smtp" },
		func(s *mailer.Server) { s.From = "" },
		func(s *mailer.Server) { s.From = "a@b.test\r\nBcc: c@d.test" },
		func(s *mailer.Server) { s.Encryption = mailer.InClear },
	} {
		s := good
		change(&s)
		if s.Check() == nil {
			t.Errorf("%+v is taken", s)
		}
	}
}
