// Package mailer owns how notices become e-mails: their form, and their way to an SMTP server.
// Which notices go together, and when, is the state's (controlplane). An e-mail is sent before it
// is noted as sent, so a kill between the two repeats it, under the same Message-ID.
package mailer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/retry"
	"shoal.dev/shoal/pkg/telemetry"
	"shoal.dev/shoal/pkg/work"
)

const (
	atOnce    = 20 // e-mails of one step, over one connection
	lookEvery = 15 * time.Second
	maxTries  = 8 // of one e-mail that the server puts off, in about a day
)

// tryAgain is how long an e-mail waits that the server has put off.
var tryAgain = retry.Backoff{First: 5 * time.Minute, Most: 8 * time.Hour}

// Config is what a Kind works with. Link and Point may be left out.
type Config struct {
	Server  Server
	Client  client.Client
	Clock   clock.Clock
	Logger  *slog.Logger
	Metrics *telemetry.Metrics
	// Link is the link of a letter; nil: letters are not sent.
	Link func(letter ids.ID) string
	// Point is called at "work.email.after_send", so that tests can end the process there.
	Point func(name string)
}

type mailer struct {
	Config
	sent *prometheus.CounterVec
}

// Kind is the sending of what waits, by one node at a time.
func Kind(config Config) work.Kind {
	m := &mailer{Config: config, sent: config.Metrics.Counters("shoal_apiserver_emails_total",
		"E-mails by what became of them: sent, later, refused or nowhere.", "outcome")}
	if m.Point == nil {
		m.Point = func(string) {}
	}
	return work.Kind{Name: work.Email, Recurring: true, Step: m.step}
}

func (m *mailer) step(ctx context.Context, _ work.Item) (work.Outcome, error) {
	letters := m.letters()
	if len(letters) == 0 && !m.waits() {
		return work.Rest(nil, lookEvery), nil
	}
	mails, err := client.Do(ctx, m.Client, client.TakeMails{Most: atOnce}, nil)
	if err != nil {
		return work.Outcome{}, fmt.Errorf("apiserver: take e-mails: %w", err)
	}
	record, failed := m.send(ctx, append(letters, m.told(mails)...))
	if len(record.Done)+len(record.Later) > 0 {
		if _, err := client.Do(ctx, m.Client, record, nil); err != nil {
			return work.Outcome{}, fmt.Errorf("apiserver: note e-mails: %w", err)
		}
	}
	if failed != nil {
		return work.Outcome{}, fmt.Errorf("apiserver: send e-mails: %w", failed)
	}
	if len(mails) == atOnce || len(letters) == atOnce {
		return work.GoOn(nil), nil
	}
	return work.Rest(nil, lookEvery), nil
}

// waits says whether an e-mail is due.
func (m *mailer) waits() (waits bool) {
	now := m.Clock.Now().UnixMilli()
	m.Client.View().MailsDue(func(mail *client.Mail) bool {
		waits = mail.At <= now
		return false
	})
	return waits
}

// outgoing is an e-mail that is about to be sent.
type outgoing struct {
	id       ids.ID
	customer string
	to       string // "": nowhere
	at       time.Time
	tries    uint32 // that failed
	content  content
}

// letters are those that are due. They do not change, so nobody has to take them.
func (m *mailer) letters() (due []outgoing) {
	if m.Link == nil {
		return nil
	}
	now := m.Clock.Now().UnixMilli()
	m.Client.View().LettersDue(func(l *client.Letter) bool {
		if l.At > now || len(due) == atOnce {
			return false
		}
		due = append(due, outgoing{id: l.ID, customer: l.Customer, to: l.Email, tries: l.Tries,
			at:      time.UnixMilli(l.Expires - client.LetterMillis),
			content: newLetter(l, m.Link(l.ID))})
		return true
	})
	return due
}

// told are e-mails of what happened.
func (m *mailer) told(mails []client.Mail) []outgoing {
	view, all := m.Client.View(), make([]outgoing, len(mails))
	for i := range mails {
		mail := &mails[i]
		all[i] = outgoing{id: mail.ID, customer: mail.Customer, tries: mail.Tries,
			at:      time.UnixMilli(mail.Notices[len(mail.Notices)-1].At),
			content: newContent(mail)}
		if profile := view.Profile(mail.Customer); profile != nil {
			all[i].to = profile.Email
		}
	}
	return all
}

// send sends e-mails until the server fails, and says what became of each until then.
func (m *mailer) send(ctx context.Context, mails []outgoing) (record client.RecordMails,
	failed error) {
	if len(mails) == 0 {
		return record, nil
	}
	connection, err := m.Server.dial(ctx)
	if err != nil {
		return record, err
	}
	defer connection.close()
	for i := range mails {
		mail, outcome := &mails[i], "nowhere"
		if mail.to != "" {
			if outcome, err = m.deliver(connection, mail); err != nil {
				return record, err
			}
		}
		if outcome == "later" {
			record.Later = append(record.Later, client.MailLater{ID: mail.id,
				After: tryAgain.After(int(mail.tries) + 1).Milliseconds()})
		} else {
			record.Done = append(record.Done, mail.id)
		}
		m.sent.WithLabelValues(outcome).Inc()
	}
	return record, nil
}

// deliver sends one e-mail. Its error is the server's, by which no other one would be sent either.
func (m *mailer) deliver(connection *connection, mail *outgoing) (outcome string, err error) {
	message, err := m.Server.message(mail)
	if err != nil { // nobody can send it, and it holds up no other
		err = &refusal{error: err}
	} else {
		err = connection.send(message)
	}
	m.Point("work.email.after_send")
	var refused *refusal
	switch {
	case err == nil:
		return "sent", nil
	case !errors.As(err, &refused):
		return "", err
	case refused.passing && mail.tries+1 < maxTries:
		return "later", nil
	}
	m.Logger.Warn("an e-mail was refused for good", "mail", mail.id.String(), "customer",
		mail.customer, "error", err)
	return "refused", nil
}
