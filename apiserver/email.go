package apiserver

import (
	"shoal.dev/shoal/apiserver/internal/mailer"
	"shoal.dev/shoal/pkg/work"
)

// MailConfig is what the sending of e-mails works with.
type MailConfig = mailer.Config

// MailServer is an SMTP server and how it is spoken to.
type MailServer = mailer.Server

// Email is the sending of e-mails to customers, a kind of background work.
func Email(config MailConfig) work.Kind { return mailer.Kind(config) }
