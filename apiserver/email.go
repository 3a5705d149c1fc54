package apiserver

import (
	"shoal.dev/shoal/apiserver/internal/mailer"
	"shoal.dev/shoal/pkg/work"
)

// MailConfig is the configuration of Email.
type MailConfig = mailer.Config

// MailServer is an SMTP server and how to speak to it.
type MailServer = mailer.Server

// Email is a kind of background work: it sends e-mails to customers.
func Email(config MailConfig) work.Kind { return mailer.Kind(config) }
