package mailer_test

import (
	"crypto/rand"
	"crypto/x509"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"shoal.dev/shoal/apiserver/internal/mailer"
)

// newBox returns a mailer to a running SMTP server, which keeps each e-mail as a file in a Maildir.
// take returns the one to a customer.
func newBox(t *testing.T) (p *post, take func(customer string) string) {
	t.Helper()
	for _, name := range []string{"SMTP_ADDR", "SMTP_CA", "SMTP_MAILDIR"} {
		if os.Getenv(name) == "" {
			if os.Getenv("SHOAL_CLUSTER_SUITE") == "1" {
				t.Fatal(name + " is not set")
			}
			t.Skip(name + " is not set")
		}
	}
	authority, err := os.ReadFile(os.Getenv("SMTP_CA"))
	if err != nil {
		t.Fatal(err)
	}
	p = newPost(t, mailer.StartTLS)
	p.server.Address, p.server.RootCAs = os.Getenv("SMTP_ADDR"), x509.NewCertPool()
	if !p.server.RootCAs.AppendCertsFromPEM(authority) {
		t.Fatal("SMTP_CA has no certificate")
	}
	return p, func(customer string) string {
		t.Helper()
		files, err := filepath.Glob(filepath.Join(os.Getenv("SMTP_MAILDIR"), "new", "*"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(string(text), "To: <"+customer+"@shop.test>") {
				return string(text)
			}
		}
		t.Fatalf("none of %d e-mails is to %s", len(files), customer)
		return ""
	}
}

// TestARealMailServer: an SMTP server that is not ours takes an e-mail by STARTTLS, and keeps what
// was meant. Without its authority nothing is sent.
func TestARealMailServer(t *testing.T) {
	p, take := newBox(t)
	who := strings.ToLower(rand.Text()) // no earlier test has written to it
	p.customer(who)
	p.happens(who)
	p.clock.Advance(time.Minute)
	trusted := p.server.RootCAs
	p.server.RootCAs = x509.NewCertPool()
	if _, err := p.step(); err == nil || p.waiting() != 1 {
		t.Fatalf("an unknown authority: %v", err)
	}
	p.server.RootCAs = trusted
	p.must()
	if p.waiting() != 0 {
		t.Fatalf("%d e-mails wait: %s", p.waiting(), p.logs.String())
	}
	head, plain, html := parse(t, take(who))
	if head.Get("From") != "<shoal@shoal.test>" ||
		!strings.HasSuffix(head.Get("Message-ID"), "@shoal.test>") ||
		!strings.Contains(head.Get("Date"), "02 Jan 2026 03:04:05") {
		t.Errorf("head: %v", head)
	}
	if !strings.Contains(plain, `The API key "<key> & `) || strings.Contains(plain, "</p>") ||
		!strings.Contains(html, "&lt;key&gt; &amp; ") || !strings.Contains(html, "</p>") {
		t.Errorf("text: %s\nHTML: %s", plain, html)
	}
}
