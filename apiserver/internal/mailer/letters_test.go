package mailer_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/emersion/go-smtp"

	"shoal.dev/shoal/apiserver/internal/mailer"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/ids"
)

// letter has a letter sent to an account.
func (p *post) letter() ids.ID {
	id := p.ids.New()
	p.client.Must(p, client.PutLetter{ID: id, Email: "eve@shop.test", Known: true})
	return id
}

// TestLettersAreSent at once, to the account's address, with the link. Only a crash after sending
// repeats a letter, unchanged.
func TestLettersAreSent(t *testing.T) {
	p := newPost(t, mailer.InClear)
	p.client.Must(p, client.CreateAccount{ID: p.ids.New(), Email: "eve@shop.test", Customer: "ann",
		Password: "p", Entry: p.ids.New()})
	first := p.letter()
	p.must()
	if len(p.mails()) != 0 {
		t.Fatal("a letter was sent without a link")
	}
	p.link = func(id ids.ID) string { return "https://shoal.test/x?link=" + id.String() }
	p.kill = func() { panic(errKilled) }
	if _, err := p.step(); !errors.Is(err, errKilled) {
		t.Fatalf("not killed: %v", err)
	}
	p.kill = func() {}
	p.clock.Advance(time.Minute)
	p.must()
	p.must()
	all := p.mails()
	if len(all) != 2 || id(t, all[0]) != id(t, all[1]) {
		t.Fatalf("%d e-mails", len(all))
	}
	head, plain, html := parse(t, all[1])
	if link := p.link(first); head.Get("To") != "<eve@shop.test>" ||
		!strings.Contains(head.Get("Date"), "02 Jan 2026 03:04:05") ||
		!strings.Contains(plain, "\r\n"+link+"\r\n") ||
		!strings.Contains(plain, "until 2026-01-02 03:34 UTC") ||
		!strings.Contains(html, `<a href="`+link+`">`) {
		t.Errorf("%v: %s %s", head, plain, html)
	}
	p.letter()
	p.refuses(&smtp.SMTPError{Code: 450, Message: "busy"})
	p.must()
	p.refuses(nil)
	p.must()
	if len(p.mails()) != 2 {
		t.Error("it is tried again at once")
	}
	p.clock.Advance(10 * time.Minute)
	p.must()
	if len(p.mails()) != 3 {
		t.Errorf("%d e-mails", len(p.mails()))
	}
}

// TestLettersSayWhatTheyAreFor: a new account, or that one exists already.
func TestLettersSayWhatTheyAreFor(t *testing.T) {
	p := newPost(t, mailer.InClear)
	on := true
	p.client.Must(t, client.PutSettings{SignUp: &on})
	p.client.Must(t, client.CreateAccount{ID: p.ids.New(), Email: "eve@shop.test", Customer: "ann",
		Password: "p", Entry: p.ids.New()})
	p.link = func(id ids.ID) string { return "https://shoal.test/x?link=" + id.String() }
	for address, title := range map[string]string{"eve@shop.test": "You have an account already",
		"new@shop.test": "Finish signing up"} {
		p.client.Must(t, client.PutLetter{ID: p.ids.New(), Email: address, SignUp: true})
		p.must()
		all := p.mails()
		head, _, _ := parse(t, all[len(all)-1])
		if head.Get("Subject") != title || head.Get("To") != "<"+address+">" {
			t.Errorf("%s: %v", address, head)
		}
	}
}
