package wallet

import (
	"cmp"
	"context"
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"time"

	"golang.org/x/text/language"
	"golang.org/x/text/message"
	"golang.org/x/text/number"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/price"
)

//go:embed statement.html
var pageText string

// statementPage is a statement for people, in words and with localized numbers.
type statementPage struct {
	*statement
	*message.Printer
	month time.Time
}

// printerOf formats numbers for the first language of Accept-Language, or for English.
func printerOf(accepted string) *message.Printer {
	tags, _, err := language.ParseAcceptLanguage(accepted)
	if err != nil || len(tags) == 0 {
		tags = []language.Tag{language.English}
	}
	return message.NewPrinter(tags[0])
}

// Words for codes. Other codes are shown unchanged.
var (
	typeWords = map[string]string{"TOPUP": "Top-up", "CHARGE": "Charge",
		"ADJUSTMENT": "Adjustment", "FREE_GRANT": "Free pages"}
	sourceWords = map[string]string{"RUN": "Run", "SAMPLE": "Sample",
		"PREVIEW_URL": "Preview of a page", "PREVIEW_CURL": "Preview of a request"}
)

// euros formats an amount in micros with two to six decimal places. Below 2^53 micros a float64
// distinguishes any two amounts at six decimals.
func (p *statementPage) euros(micros int64) string {
	return p.Sprint(number.Decimal(float64(micros)/price.MicrosPerEUR,
		number.MinFractionDigits(2), number.MaxFractionDigits(6)))
}

// line formats an entry for the page.
func (p *statementPage) line(e *client.Entry) map[string]string {
	posted := newPosting(e)
	source := cmp.Or(sourceWords[posted.Source], posted.Source)
	if e.Amount == 0 && e.FreeDelta != 0 {
		source = p.Sprint(number.Decimal(e.FreeDelta)) + " free"
	}
	pages := ""
	if posted.Pages > 0 {
		pages = p.Sprint(number.Decimal(posted.Pages))
	}
	return map[string]string{"At": time.UnixMilli(e.SettledAt).UTC().Format(time.DateTime),
		"Type": cmp.Or(typeWords[posted.Type], posted.Type), "Source": source, "Run": posted.Job,
		"Pages": pages, "Amount": p.euros(e.Amount), "After": p.euros(e.BalanceAfter)}
}

// write writes the month as a printable page.
func (p *statementPage) write(ctx context.Context, w io.Writer) error {
	page, err := template.New("statement").Parse(pageText)
	if err != nil {
		return fmt.Errorf("statement: %w", err)
	}
	part := func(name string, of any) error { return page.ExecuteTemplate(w, name, of) }
	head := map[string]string{"Month": p.month.Format("January 2006"), "Customer": p.customer,
		"Opening": p.euros(p.Opening), "Closing": p.euros(p.Closing)}
	if err := part("head", head); err != nil {
		return fmt.Errorf("statement: %w", err)
	}
	err = p.entries(ctx, func(e *client.Entry) error { return part("posting", p.line(e)) })
	if err != nil {
		return err
	}
	return part("foot", head)
}
