// Package authority makes what a cluster trusts: its authority, the identities of nodes, and
// sign-in tokens. Its commands use only an operator's directory, and call no service.
package authority

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"shoal.dev/shoal/cmd/shoal/internal/terminal"
	"shoal.dev/shoal/controlplane/identity"
)

// FileName is the name of the authority's file in the operator's directory.
const FileName = "authority.pem"

// Flags name the operator's directory.
type Flags struct {
	Data string `help:"Directory of the cluster's authority." default:"./cluster" placeholder:"DIR"`
}

// Path is where the authority's certificate and key are, or will be.
func (c *Flags) Path() string { return filepath.Join(c.Data, FileName) }

// isAuthority says whether an existing file is the authority's.
func (c *Flags) isAuthority(file string) bool {
	one, err := os.Stat(file)
	if err != nil {
		return false
	}
	other, err := os.Stat(c.Path())
	return err == nil && os.SameFile(one, other)
}

// Init is 'shoal cluster init', which makes the authority of a new cluster.
type Init struct {
	Flags
	Name string `help:"Name of the cluster: lower-case letters, digits and inner hyphens." default:"shoal" placeholder:"NAME"`
}

// Help returns the command's help text.
func (*Init) Help() string {
	return `It writes DIR/authority.pem, from which 'shoal cluster cert' issues node identities. Guard the file like a root password,
and keep it off the nodes. With DIR as --data, the commands for operators sign in as administrators of the cluster.

Example:

  shoal cluster init --data ./cluster --name prod
  shoal cluster cert --data ./cluster cp1 --roles controlplane
  shoal serve --identity ./cluster/cp1.pem --bootstrap --kafka-brokers k:9092 --clickhouse-url http://c:8123/default
  SHOAL_SERVER=http://api1:8080 shoal status --data ./cluster`
}

// Run makes an authority. It does not replace an existing one.
func (c *Init) Run(t *terminal.Terminal) error {
	authority, err := identity.NewAuthority(c.Name, t.Clock.Now())
	if err != nil {
		return terminal.Usagef("--name: %v", err)
	}
	if err := os.MkdirAll(c.Data, 0o700); err != nil {
		return fmt.Errorf("--data: %w", err)
	}
	if err := authority.Write(c.Path()); err != nil {
		if errors.Is(err, fs.ErrExist) {
			return &terminal.ExitError{Code: terminal.ExitFailed,
				Text: fmt.Sprintf("%s is there already: it is never replaced, since its nodes "+
					"would be lost", c.Path())}
		}
		return err
	}
	t.Notef("The authority of cluster %q is in %s.", c.Name, c.Path())
	return nil
}

// Cert is 'shoal cluster cert', which makes or renews a node's certificate.
type Cert struct {
	Flags
	Node  string   `arg:"" help:"Name of the node, unique in the cluster." placeholder:"NODE"`
	Roles []string `required:"" help:"Roles that the node may have: controlplane, fetcher, ingest, billing, apiserver." placeholder:"ROLE"`
	Out   string   `help:"File to write; by default DIR/NODE.pem." type:"path" placeholder:"FILE"`
	Days  int      `help:"Days for which the identity is valid." default:"365"`
}

// Help returns the command's help text.
func (*Cert) Help() string {
	return `The file has all that a node needs to join: its certificate and key, the cluster's certificate and the gossip key.
Give it to that node alone. To renew a node's identity, issue a new file of the same name and restart the node.

Example:

  shoal cluster cert --data ./cluster fetcher7 --roles fetcher
  shoal serve --identity ./cluster/fetcher7.pem --join cp1:7401 --kafka-brokers k:9092 --clickhouse-url http://c:8123/default`
}

// maxCertDays is roughly the life of an authority.
const maxCertDays = 3650

// Validate checks combinations of flags.
func (c *Cert) Validate() error {
	for _, role := range c.Roles {
		if !slices.Contains(identity.Roles(), role) {
			return fmt.Errorf("--roles: %q is none of %s", role,
				strings.Join(identity.Roles(), ", "))
		}
	}
	if c.Days < 1 || c.Days > maxCertDays {
		return fmt.Errorf("--days: 1 to %d", maxCertDays)
	}
	return nil
}

// Run issues an identity. It does not replace an existing file.
func (c *Cert) Run(t *terminal.Terminal) error {
	authority, err := identity.ReadAuthority(c.Path())
	if errors.Is(err, fs.ErrNotExist) {
		return &terminal.ExitError{Code: terminal.ExitFailed,
			Text: fmt.Sprintf("no authority in %s: 'shoal cluster init --data %s' makes one",
				c.Data, c.Data)}
	}
	if err != nil {
		return err
	}
	issued, err := authority.Issue(c.Node, c.Roles, t.Clock.Now(),
		time.Duration(c.Days)*24*time.Hour)
	if err != nil {
		return terminal.Usagef("%v", err)
	}
	out := c.Out
	if out == "" {
		out = filepath.Join(c.Data, c.Node+".pem")
	}
	if err := issued.Write(out); err != nil {
		switch {
		case errors.Is(err, fs.ErrExist) && c.isAuthority(out):
			return terminal.Usagef("%s is the cluster's authority: name another file with --out",
				out)
		case errors.Is(err, fs.ErrExist):
			return &terminal.ExitError{Code: terminal.ExitFailed,
				Text: out + " is there already: move it away, or name another with --out"}
		}
		return err
	}
	t.Notef("%s: node %q of cluster %q, good until %s.", out, issued.Node, issued.Cluster,
		issued.Expires().Format(time.DateOnly))
	return nil
}
