package service

import (
	"fmt"

	"shoal.dev/shoal/apiserver"
)

// MailFlags configure e-mails to customers.
type MailFlags struct {
	Address      string `name:"smtp" group:"mail" help:"SMTP server for e-mails to customers. Without it no e-mails are sent." placeholder:"HOST:PORT"`
	From         string `name:"smtp-from" group:"mail" help:"Sender address of e-mails." placeholder:"ADDRESS"`
	Encryption   string `name:"smtp-tls" group:"mail" help:"Encryption of the connection: starttls, tls (from the first byte) or none." enum:"starttls,tls,none" default:"starttls"`
	User         string `name:"smtp-user" group:"mail" help:"User at the SMTP server, if it requires one." placeholder:"NAME"`
	Password     string `name:"smtp-password" group:"mail" help:"Password of --smtp-user. Prefer SHOAL_SMTP_PASSWORD or --smtp-password-file to the command line." placeholder:"TEXT"`
	PasswordFile string `name:"smtp-password-file" group:"mail" help:"File with the password of --smtp-user." type:"path" placeholder:"FILE"`
	CAFile       string `name:"smtp-ca-file" group:"mail" help:"Certificate authorities for the SMTP server (PEM), instead of the system's." type:"path" placeholder:"FILE"`
}

// server is the SMTP server that the flags name. Its error names the flag.
func (m *MailFlags) server() (server apiserver.MailServer, err error) {
	server = apiserver.MailServer{Address: m.Address, Encryption: m.Encryption, User: m.User,
		From: m.From}
	if server.Password, err = secret("--smtp-password", m.Password, m.PasswordFile); err != nil {
		return server, err
	}
	if server.RootCAs, err = authorities("--smtp-ca-file", m.CAFile); err != nil {
		return server, err
	}
	if err := server.Check(); err != nil {
		return server, fmt.Errorf("--smtp, --smtp-from: %w", err)
	}
	return server, nil
}

func (m *MailFlags) check() error {
	if m.Address == "" {
		if m.From != "" || m.User != "" {
			return fmt.Errorf("--smtp-from, --smtp-user: need --smtp")
		}
		return nil
	}
	_, err := m.server()
	return err
}

// buildMail makes the node send e-mails if a server is configured.
func (n *node) buildMail() error {
	if n.config.Mail.Address == "" {
		return nil
	}
	server, err := n.config.Mail.server()
	if err != nil {
		return err
	}
	config := apiserver.MailConfig{Server: server, Client: n.control.Client(), Clock: n.clock,
		Logger: n.forRole("mail"), Metrics: n.metrics, Point: n.point}
	if n.config.PublicURL != "" {
		config.Link, err = apiserver.LetterLinks(n.config.Data, n.config.PublicURL)
		if err != nil {
			return err
		}
	}
	n.worker.Add(apiserver.Email(config))
	return nil
}
