// Package mailer sends notices as e-mails: it makes them and hands them to an SMTP server. The
// state decides which notices go together, and when (controlplane). An e-mail is sent before it is
// recorded as sent. So a crash in between repeats it, under the same Message-ID.
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
	atOnce    = 20 // e-mails per step, over one connection
	lookEvery = 15 * time.Second
	maxTries  = 8 // of an e-mail that the server defers, over about a day
	// maxBroken is how often an e-mail that breaks connections is tried, over more than a day. A
	// server that accepts connections but no e-mail must not use up the tries at once.
	maxBroken = 10
	// brokenInRow is how many such e-mails in a row mean that the server has failed.
	brokenInRow = 3
	// standBack is how long an e-mail lets others go first if the server was gone after it.
	standBack = time.Minute
)

// tryAgain is how long an e-mail waits that was deferred, or whose connection broke.
var tryAgain = retry.Backoff{First: 5 * time.Minute, Most: 8 * time.Hour}

// Config is what a Kind needs. Link and Point are optional.
type Config struct {
	Server  Server
	Client  client.Client
	Clock   clock.Clock
	Logger  *slog.Logger
	Metrics *telemetry.Metrics
	// Link is the link of a letter; nil: letters are not sent.
	Link func(letter ids.ID) string
	// Point is called at "work.email.after_send". Tests end the process there.
	Point func(name string)
}

type mailer struct {
	Config
	sent *prometheus.CounterVec
}

// Kind is the kind of background work that sends e-mails, on one node at a time.
func Kind(config Config) work.Kind {
	m := &mailer{Config: config, sent: config.Metrics.Counters("shoal_apiserver_emails_total",
		"E-mails by outcome: sent, later (to be tried again), refused or nowhere (no "+
			"address).", "outcome")}
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

// outgoing is an e-mail to be sent.
type outgoing struct {
	id       ids.ID
	customer string
	to       string // "": nowhere
	at       time.Time
	tries    uint32 // failed ones
	broken   bool   // a connection broke on it in this step
	content  content
}

// letters are the due letters. They do not change, so they need not be taken.
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

// told makes e-mails of notices.
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

// send sends e-mails until the server fails, and records the result of each. An e-mail that breaks
// the connection is put behind the others, over a new connection. If the server cannot be reached
// then, the e-mail's try does not count.
func (m *mailer) send(ctx context.Context, mails []outgoing) (record client.RecordMails,
	failed error) {
	if len(mails) == 0 {
		return record, nil
	}
	connection, err := m.Server.dial(ctx)
	if err != nil {
		return record, err
	}
	for inRow := 0; len(mails) > 0; {
		mail, outcome := mails[0], "nowhere"
		mails = mails[1:]
		var broke error
		if mail.to != "" {
			outcome, broke = m.deliver(connection, &mail)
		}
		if broke == nil {
			m.note(&record, &mail, outcome)
			inRow = 0
			continue
		}
		connection.close()
		if connection, err = m.Server.dial(ctx); err != nil {
			record.Later = append(record.Later, client.MailLater{ID: mail.id,
				After: standBack.Milliseconds(), Untried: true})
			return record, errors.Join(broke, err)
		}
		inRow++
		if mail.broken {
			m.breakOff(&record, &mail, broke)
		} else {
			mail.broken = true
			mails = append(mails, mail)
		}
		if inRow == brokenInRow {
			failed = broke
			break
		}
	}
	connection.close()
	for i := range mails {
		if mails[i].broken {
			m.breakOff(&record, &mails[i], failed)
		}
	}
	return record, failed
}

// note records the result of an e-mail.
func (m *mailer) note(record *client.RecordMails, mail *outgoing, outcome string) {
	if outcome == "later" {
		record.Later = append(record.Later, client.MailLater{ID: mail.id,
			After: tryAgain.After(int(mail.tries) + 1).Milliseconds()})
	} else {
		record.Done = append(record.Done, mail.id)
	}
	m.sent.WithLabelValues(outcome).Inc()
}

// breakOff defers an e-mail that breaks connections, or gives it up.
func (m *mailer) breakOff(record *client.RecordMails, mail *outgoing, failed error) {
	if mail.tries+1 < maxBroken {
		m.note(record, mail, "later")
		return
	}
	m.giveUp(mail, failed)
	m.note(record, mail, "refused")
}

func (m *mailer) giveUp(mail *outgoing, err error) {
	m.Logger.Warn("an e-mail was refused for good", "mail", mail.id.String(), "customer",
		mail.customer, "error", err)
}

// deliver sends one e-mail. An error is one of the connection, which cannot be used any more.
func (m *mailer) deliver(connection *connection, mail *outgoing) (outcome string, err error) {
	message, err := m.Server.message(mail)
	if err != nil { // nobody can send it, so refuse it and go on
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
	m.giveUp(mail, err)
	return "refused", nil
}
