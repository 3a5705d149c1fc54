package commands

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"strconv"
	"strings"

	"shoal.dev/shoal/cmd/shoal/internal/api"
	"shoal.dev/shoal/cmd/shoal/internal/terminal"
	"shoal.dev/shoal/cmd/shoal/internal/trail"
)

// Audit has the commands for the audit trail.
type Audit struct {
	List   AuditList   `cmd:"" help:"List entries of the audit trail, newest first."`
	Export AuditExport `cmd:"" help:"Write the whole audit trail to a file."`
	Verify AuditVerify `cmd:"" help:"Recompute the trail's hash chain, and show where it is broken."`
}

// AuditList is 'shoal audit list'.
type AuditList struct {
	Connection
	Actor    string `help:"Only entries of this actor: the subject of a sign-in, or the id of a key." placeholder:"WHO"`
	Customer string `help:"Only entries about this customer." placeholder:"REF"`
	From     string `help:"Only entries from this time on, such as 2026-01-02T03:04:05Z." placeholder:"TIME"`
	To       string `help:"Only entries before this time." placeholder:"TIME"`
	Order    string `default:"newest" enum:"newest,oldest" help:"Entries that come first: newest or oldest."`
	Limit    int    `default:"50" help:"Most entries to list, up to 1000."`
	JSON     bool   `help:"Print the entries as JSON."`
}

// Help returns the command's help text.
func (*AuditList) Help() string {
	return `Each entry shows who did what, for whom and from where. WHAT names the changed records; --json shows them before and
after.

It signs in as an administrator, with a token of the local issuer from the data directory, or with the sign-in token in
SHOAL_KEY.

Examples:

  shoal audit list
  shoal audit list --customer acme --from 2026-01-01T00:00:00Z --order oldest`
}

// Run lists entries.
func (c *AuditList) Run(ctx context.Context, t *terminal.Terminal) error {
	if c.Limit < 1 || c.Limit > 1000 {
		return terminal.Usagef("--limit: 1 to 1000")
	}
	client, err := c.AdminClient(t)
	if err != nil {
		return err
	}
	defer client.Close()
	page, err := client.Audit(ctx, api.AuditFilter{Actor: c.Actor, Customer: c.Customer,
		From: c.From, To: c.To, Order: c.Order}, c.Limit)
	if err != nil {
		return err
	}
	if c.JSON {
		return terminal.PrintJSON(t.Out, page)
	}
	var rows [][]string
	for i := range page.Value.Items {
		rows = append(rows, auditRow(&page.Value.Items[i]))
	}
	if err := terminal.PrintTable(t.Out, []string{"NUMBER", "AT (UTC)", "ACTION", "WHO",
		"CUSTOMER", "ADDRESS", "WHAT"}, rows); err != nil {
		return err
	}
	if page.Value.HasMore {
		t.Notef("There are more: --limit, --from and --to reach them.")
	}
	return nil
}

func auditRow(e *api.AuditEntry) []string {
	who := e.Actor.Subject
	if who == "" && e.Actor.KeyID != nil {
		who = "key " + *e.Actor.KeyID
	}
	var what []string
	for _, change := range e.Changes {
		what = append(what, change.Record)
	}
	if e.MoreChanges > 0 {
		what = append(what, fmt.Sprintf("and %d more", e.MoreChanges))
	}
	if e.Count > 0 {
		what = append(what, terminal.Plural(int64(e.Count), "time")+" from "+
			terminal.Moment(e.FailedFrom))
	}
	return []string{strconv.FormatUint(e.Number, 10), terminal.Moment(e.At), e.Action, who,
		e.CustomerUniqueRef, e.Actor.Address, strings.Join(what, ", ")}
}

// AuditExport is 'shoal audit export'.
type AuditExport struct {
	Connection
	Format string `default:"jsonl" enum:"jsonl,csv" help:"jsonl, which 'shoal audit verify' reads, or csv."`
	Out    string `short:"o" help:"File to write, which appears only when complete; by default standard output." placeholder:"FILE"`
}

// Help returns the command's help text.
func (*AuditExport) Help() string {
	return `The file has every entry from the first on, in order. Keep exports away from the service: they can prove that a trail was
rewritten.

Examples:

  shoal audit export -o trail-$(date +%F).jsonl
  shoal audit export --format csv -o trail.csv`
}

// Run writes the trail.
func (c *AuditExport) Run(ctx context.Context, t *terminal.Terminal) error {
	client, err := c.AdminClient(t)
	if err != nil {
		return err
	}
	defer client.Close()
	return writeAs(t, c.Out, private, func(w io.Writer) error {
		if c.Format == "csv" {
			return client.AuditCSV(ctx, w)
		}
		for entry, err := range client.AuditTrail(ctx) {
			if err == nil {
				_, err = w.Write(append(entry, '\n'))
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// AuditVerify is 'shoal audit verify'.
type AuditVerify struct {
	Connection
	File string `arg:"" optional:"" help:"File that 'shoal audit export' wrote, '-' for standard input. By default the service's trail is read." placeholder:"FILE"`
	Head string `help:"Newest entry of an earlier verification, as printed then: NUMBER:HASH." placeholder:"HEAD"`
}

// Help returns the command's help text.
func (*AuditVerify) Help() string {
	return `Each entry contains the hash of the one before. So if the chain holds, every entry up to the last is there, unchanged. The
command prints the newest entry's number and hash. Note them down elsewhere and pass them as --head the next time: that
shows whether the end of the trail was cut off or rewritten.

The exit code is 0 if the chain holds, also across restores. Otherwise it is that of the first finding: 6 entries are
missing, 7 an entry was changed, 8 entries belong to another trail, 9 entries are duplicated or out of order. It is 1 if
the trail could not be verified.

Examples:

  shoal audit verify
  shoal audit verify --head 4711:5f0c…e2
  shoal audit verify trail-2026-01-02.jsonl`
}

// maxAuditLine bounds a line of an export, in bytes. An entry has less than 40,000.
const maxAuditLine = 1 << 20

// shownFindings is how many findings are printed.
const shownFindings = 20

// Run verifies the trail.
func (c *AuditVerify) Run(ctx context.Context, t *terminal.Terminal) error {
	known, err := parseHead(c.Head)
	if err != nil {
		return err
	}
	entries, done, err := c.open(ctx, t)
	if err != nil {
		return err
	}
	defer done()
	verifier, place := trail.NewVerifier(known), 0
	for text, err := range entries {
		if err != nil {
			return err
		}
		place++
		entry, err := trail.Read(text)
		if err != nil {
			return fmt.Errorf("entry at place %d: %w", place, err)
		}
		verifier.Add(entry)
	}
	return tellTrail(t, verifier.Finish(), known)
}

// open begins to read the trail.
func (c *AuditVerify) open(ctx context.Context, t *terminal.Terminal) (
	entries iter.Seq2[json.RawMessage, error], done func(), err error) {
	switch c.File {
	case "":
		client, err := c.AdminClient(t)
		if err != nil {
			return nil, nil, err
		}
		return client.AuditTrail(ctx), client.Close, nil
	case standard:
		return auditLines(t.In), func() {}, nil
	}
	file, err := os.Open(c.File)
	if err != nil {
		return nil, nil, err
	}
	return auditLines(file), func() { _ = file.Close() }, nil // read-only
}

// auditLines reads an export.
func auditLines(from io.Reader) iter.Seq2[json.RawMessage, error] {
	return func(yield func(json.RawMessage, error) bool) {
		lines := bufio.NewScanner(from)
		lines.Buffer(nil, maxAuditLine)
		for lines.Scan() {
			if len(lines.Bytes()) > 0 && !yield(lines.Bytes(), nil) {
				return
			}
		}
		if err := lines.Err(); errors.Is(err, bufio.ErrTooLong) {
			yield(nil, fmt.Errorf("a line is longer than %d bytes: this is no export of the trail "+
				"as jsonl", maxAuditLine))
		} else if err != nil {
			yield(nil, err)
		}
	}
}

// parseHead reads NUMBER:HASH.
func parseHead(text string) (*trail.Head, error) {
	if text == "" {
		return nil, nil
	}
	number, hash, _ := strings.Cut(text, ":")
	at, err := strconv.ParseUint(number, 10, 64)
	head := &trail.Head{Number: at}
	if err == nil {
		err = head.Hash.UnmarshalText([]byte(hash))
	}
	if err != nil || at == 0 {
		return nil, terminal.Usagef("--head: want NUMBER:HASH, as an earlier look printed it")
	}
	return head, nil
}

// exitCode is the code for the kind of the first finding.
func exitCode(kind trail.Kind) int {
	switch kind {
	case trail.Gap:
		return terminal.ExitGap
	case trail.Changed:
		return terminal.ExitChanged
	case trail.Forked:
		return terminal.ExitForked
	}
	return terminal.ExitOrder
}

// tellTrail reports the result of a verification.
func tellTrail(t *terminal.Terminal, r trail.Report, known *trail.Head) error {
	say := func(format string, args ...any) error {
		_, err := fmt.Fprintf(t.Out, format+"\n", args...)
		return err
	}
	var err error
	for _, f := range r.Findings[:min(len(r.Findings), shownFindings)] {
		err = errors.Join(err, say("%s", f.Sentence()))
	}
	if more := uint64(max(0, len(r.Findings)-shownFindings)) + r.More; more > 0 {
		err = errors.Join(err, say("%s more.", terminal.Plural(int64(more), "finding")))
	}
	for _, restore := range r.Restores[max(0, len(r.Restores)-shownFindings):] {
		err = errors.Join(err, say("Entry %d is a restore: it left a trail behind whose newest "+
			"entry was %d:%s.", restore.Number, restore.Left.Number, restore.Left.Hash))
	}
	switch r.Known {
	case trail.Kept:
		err = errors.Join(err, say("Entry %d is the one that you know.", known.Number))
	case trail.Behind:
		err = errors.Join(err, say("Entry %d as you know it was left behind by the restore at "+
			"entry %d.", known.Number, r.LeftAt))
	case trail.Unsure:
		err = errors.Join(err, say("Entry %d as you know it may have been left behind by the "+
			"restore at entry %d: verify an export from before it, and this trail behind it.",
			known.Number, r.LeftAt))
	}
	if err != nil {
		return err
	}
	switch {
	case len(r.Findings) > 0:
		return &terminal.ExitError{Code: exitCode(r.Findings[0].Kind)}
	case r.Entries == 0:
		return say("The trail is empty.")
	}
	if err := say("The chain holds: %s, the newest is %d:%s.",
		entries(r.Last-r.First+1), r.Last, r.Head); err != nil {
		return err
	}
	if r.Known == trail.Unsure {
		return &terminal.ExitError{Code: terminal.ExitFailed}
	}
	return nil
}

func entries(n uint64) string {
	if n == 1 {
		return "1 entry"
	}
	return terminal.Count(int64(n)) + " entries"
}
