package mailer_test

import (
	"fmt"
	"testing"
	"time"

	"shoal.dev/shoal/apiserver/internal/mailer"
	"shoal.dev/shoal/controlplane/client"
)

// triesOf counts the failed tries of the e-mails to a customer.
func (p *post) triesOf(customer string) (tries uint32) {
	p.client.View().MailsDue(func(m *client.Mail) bool {
		if m.Customer == customer {
			tries += m.Tries
		}
		return true
	})
	return tries
}

// returns makes a server that is away accept connections again.
func (s *sink) returns() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.away = false
}

// TestTheServerGoesAway: the server goes away in the middle. What it accepted is recorded, the rest
// is sent later, and no try is counted.
func TestTheServerGoesAway(t *testing.T) {
	p := newPost(t, mailer.InClear)
	p.customer("bob")
	p.happens("ann")
	p.happens("bob")
	p.clock.Advance(time.Minute)
	p.cut = 2
	for range 2 {
		if _, err := p.step(); p.waiting() != 1 || p.triesOf("ann")+p.triesOf("bob") != 0 ||
			err == nil {
			t.Fatalf("%v, and %d wait", err, p.waiting())
		}
		p.clock.Advance(time.Minute)
	}
	p.returns()
	p.must()
	all := p.mails()
	if len(all) != 3 || id(t, all[1]) != id(t, all[2]) || p.waiting() != 0 {
		t.Errorf("%d e-mails, and %d wait", len(all), p.waiting())
	}
}

// TestPoisonHoldsUpNobody: e-mails that make the server break the connection go behind the others.
// They are given up after more than a day.
func TestPoisonHoldsUpNobody(t *testing.T) {
	for _, poisonous := range []int{1, 2, 3, 25} {
		t.Run(fmt.Sprint(poisonous), func(t *testing.T) {
			p := newPost(t, mailer.InClear)
			p.poison = "poison"
			for n := range poisonous {
				p.customer(fmt.Sprint("poison-", n))
				p.happens(fmt.Sprint("poison-", n))
			}
			p.clock.Advance(time.Second)
			p.happens("ann")
			p.clock.Advance(time.Minute)
			for range poisonous/3 + 1 { // several breaks in a row end a step
				_, _ = p.step()
			}
			if len(p.mails()) != 1 || p.triesOf("poison-0") != 1 {
				t.Fatalf("%d e-mails, %d tries", len(p.mails()), p.triesOf("poison-0"))
			}
			begun := p.clock.Now()
			for n := 0; p.waiting() > 0 && n < 20*poisonous; n++ {
				p.client.View().MailsDue(func(m *client.Mail) bool {
					p.clock.Advance(max(0, time.UnixMilli(m.At).Sub(p.clock.Now())))
					return false
				})
				_, _ = p.step()
			}
			if took := p.clock.Now().Sub(begun); p.waiting() > 0 || took < 24*time.Hour {
				t.Errorf("%d wait after %s", p.waiting(), took)
			}
		})
	}
}
