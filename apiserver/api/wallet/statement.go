package wallet

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"shoal.dev/shoal/apiserver/internal/auth"
	"shoal.dev/shoal/apiserver/internal/limits"
	"shoal.dev/shoal/apiserver/internal/operation"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/rowstore"
)

type statementRequest struct {
	Month  string `path:"month" pattern:"^[0-9]{4}-(0[1-9]|1[0-2])$" doc:"yyyy-mm, in UTC"`
	Format string `query:"format" default:"csv" enum:"csv,html" doc:"html is a printable page"`
	Locale string `header:"Accept-Language" max:"1000" doc:"Number format of the html page"`
}

const monthLayout = "2006-01"

// statement is GET /api/wallet/statements/{month}.
func (r Resource) statement() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID:     "svc_get_wallet_statement",
		Routes: operation.Routes("GET /api/wallet/statements/{month}"), Group: group,
		Summary: "Returns a month's statement, as a table or as a printable page",
		Description: "It has every transaction settled in the month. The newest by creation come " +
			"first, and a charge is created when its run is launched. The opening balance plus " +
			"the amounts is the closing balance. The current month is shown as it is so far.",
		Access: auth.Read, Rate: limits.Read, Timeout: 10 * time.Minute,
		Media: []string{"text/csv", "text/html"},
	}, func(ctx context.Context, from *operation.Caller,
		in *statementRequest) (operation.Download, error) {
		begin, err := time.Parse(monthLayout, in.Month)
		if err != nil || begin.UnixMilli() > r.Clock.Now().UnixMilli() {
			return operation.Download{}, fault.Invalid(fault.InvalidRequest, "month",
				"is none that has begun")
		}
		s := statement{Resource: r, view: from.View, customer: from.Customer, Month: in.Month,
			from: begin.UnixMilli(), to: begin.AddDate(0, 1, 0).UnixMilli()}
		if err := s.sum(ctx); err != nil {
			return operation.Download{}, err
		}
		if in.Format == "html" {
			return operation.Download{ContentType: "text/html; charset=utf-8",
				Write: (&statementPage{statement: &s, Printer: printerOf(in.Locale),
					month: begin}).write}, nil
		}
		return operation.Download{ContentType: "text/csv; charset=utf-8",
			Name: "statement-" + in.Month + ".csv", Write: s.writeTable}, nil
	})
}

// statement is a customer's statement of one month. Balances cover sealed entries, in micros.
type statement struct {
	Resource
	view             *client.View
	customer         string
	from, to         int64 // first milliseconds of the month and of the next one
	Month            string
	Opening, Closing int64
	oldest           uint64 // command index of the month's oldest entry
}

var errLedgerGap = errors.New("the ledger lacks entries")

// sum computes the balances. Entries are read in the order of their creation, but count in the
// order of their sealing. So it reads on until it has all entries sealed since the month began.
// Their sequence numbers follow the last one before.
func (s *statement) sum(ctx context.Context) error {
	wallet := s.view.Wallet(s.customer)
	if wallet == nil {
		return nil
	}
	var before *client.Entry // the last entry that was sealed before the month
	var since uint64
	var inMonth, afterwards int64 // sums
	err := s.each(ctx, func(e *client.Entry) bool {
		switch {
		case e.SettledAt < s.from:
			if before == nil || e.Sequence > before.Sequence {
				before = e
			}
		case e.SettledAt < s.to:
			since, inMonth, s.oldest = since+1, inMonth+e.Amount, e.Created
		default:
			since, afterwards = since+1, afterwards+e.Amount
		}
		return before == nil || since < wallet.Sequence-before.Sequence
	})
	if err != nil {
		return err
	}
	first := uint64(0)
	if before != nil {
		first, s.Opening = before.Sequence, before.BalanceAfter
	}
	s.Closing = s.Opening + inMonth
	if first+since != wallet.Sequence || s.Closing+afterwards != wallet.Sealed {
		return fmt.Errorf("statement of %s: %w: %d of %d before, %d since; %d and %d micros of %d",
			s.Month, errLedgerGap, first, wallet.Sequence, since, s.Closing, afterwards,
			wallet.Sealed)
	}
	return nil
}

// each visits sealed entries, newest first, until visit returns false.
func (s *statement) each(ctx context.Context, visit func(*client.Entry) bool) error {
	for place := (*rowstore.PastPlace)(nil); ; {
		part, err := s.History.EntriesBefore(ctx, s.view, s.customer, place, exportedAtOnce)
		if err != nil {
			return fmt.Errorf("ledger: %w", err)
		}
		for _, e := range part {
			if place = client.PlaceOf(e); e.Sequence > 0 && !visit(e) {
				return nil
			}
		}
		if len(part) < exportedAtOnce {
			return nil
		}
	}
}

// entries visits the entries of the month, newest first.
func (s *statement) entries(ctx context.Context, visit func(*client.Entry) error) error {
	var failed error
	err := s.each(ctx, func(e *client.Entry) bool {
		if e.Created < s.oldest || s.oldest == 0 {
			return false
		}
		if s.from <= e.SettledAt && e.SettledAt < s.to {
			failed = visit(e)
		}
		return failed == nil
	})
	return errors.Join(err, failed)
}

// columns are the columns of a statement's table.
var columns = []string{"settledAt", "type", "amountMicros", "balanceAfterMicros", "pages",
	"freeRequestsDelta", "source", "jobId", "id"}

// writeTable writes the month as csv: closing balance, entries, opening balance.
func (s *statement) writeTable(ctx context.Context, w io.Writer) error {
	table := csv.NewWriter(w)
	balance := func(at int64, name string, micros int64) error {
		record := make([]string, len(columns))
		record[0], record[1] = moment(at), name
		record[3] = strconv.FormatInt(micros, 10)
		return table.Write(record)
	}
	err := errors.Join(table.Write(columns), balance(s.to, "CLOSING_BALANCE", s.Closing))
	if err != nil {
		return fmt.Errorf("statement: %w", err)
	}
	err = s.entries(ctx, func(e *client.Entry) error {
		p := newPosting(e)
		return table.Write([]string{p.SettledAt, p.Type, strconv.FormatInt(e.Amount, 10),
			strconv.FormatInt(e.BalanceAfter, 10), strconv.FormatUint(p.Pages, 10),
			strconv.FormatInt(e.FreeDelta, 10), p.Source, p.Job, e.ID.String()})
	})
	if err == nil {
		err = balance(s.from, "OPENING_BALANCE", s.Opening)
	}
	table.Flush()
	return errors.Join(err, table.Error())
}

// posting is a line of a statement as text.
type posting struct {
	SettledAt, Type, Source, Job string
	Pages                        uint64 // charged, free or unbilled
}

func newPosting(e *client.Entry) posting {
	p := posting{SettledAt: moment(e.SettledAt), Type: e.Type, Source: string(e.Source)}
	if !e.Job.IsZero() {
		p.Job = e.Job.String()
	}
	for _, line := range e.Lines {
		p.Pages += line.Pages + line.FreePages + line.Unbilled
	}
	return p
}

func moment(at int64) string {
	return time.UnixMilli(at).UTC().Format("2006-01-02T15:04:05.000Z")
}
