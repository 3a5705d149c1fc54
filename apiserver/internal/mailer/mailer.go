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

// Config is what a Kind works with. Point may be left out.
type Config struct {
	Server  Server
	Client  client.Client
	Clock   clock.Clock
	Logger  *slog.Logger
	Metrics *telemetry.Metrics
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
	if !m.waits() {
		return work.Rest(nil, lookEvery), nil
	}
	mails, err := client.Do(ctx, m.Client, client.TakeMails{Most: atOnce}, nil)
	if err != nil {
		return work.Outcome{}, fmt.Errorf("apiserver: take e-mails: %w", err)
	}
	record, failed := m.send(ctx, mails)
	if len(record.Done)+len(record.Later) > 0 {
		if _, err := client.Do(ctx, m.Client, record, nil); err != nil {
			return work.Outcome{}, fmt.Errorf("apiserver: note e-mails: %w", err)
		}
	}
	if failed != nil {
		return work.Outcome{}, fmt.Errorf("apiserver: send e-mails: %w", failed)
	}
	if len(mails) == atOnce {
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

// send sends e-mails until the server fails, and says what became of each until then.
func (m *mailer) send(ctx context.Context, mails []client.Mail) (record client.RecordMails,
	failed error) {
	if len(mails) == 0 {
		return record, nil
	}
	connection, err := m.Server.dial(ctx)
	if err != nil {
		return record, err
	}
	defer connection.close()
	view := m.Client.View()
	for i := range mails {
		mail, outcome := &mails[i], "nowhere"
		if profile := view.Profile(mail.Customer); profile != nil && profile.Email != "" {
			if outcome, err = m.deliver(connection, mail, profile.Email); err != nil {
				return record, err
			}
		}
		if outcome == "later" {
			record.Later = append(record.Later, client.MailLater{ID: mail.ID,
				After: tryAgain.After(int(mail.Tries) + 1).Milliseconds()})
		} else {
			record.Done = append(record.Done, mail.ID)
		}
		m.sent.WithLabelValues(outcome).Inc()
	}
	return record, nil
}

// deliver sends one e-mail. Its error is the server's, by which no other one would be sent either.
func (m *mailer) deliver(connection *connection, mail *client.Mail, to string) (outcome string,
	err error) {
	message, err := m.Server.message(mail, to)
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
	case refused.passing && mail.Tries+1 < maxTries:
		return "later", nil
	}
	m.Logger.Warn("an e-mail was refused for good", "mail", mail.ID.String(), "customer",
		mail.Customer, "error", err)
	return "refused", nil
}
