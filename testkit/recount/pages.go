package recount

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/testkit/synthweb"
)

// rows assigns each row to its page and compares the pages' rows.
func (c *check) rows() {
	c.sum.Rows = len(c.got.Rows)
	for _, row := range c.got.Rows {
		source, _ := row["_sourceUrl"].(string)
		p := c.pages[form(source)]
		if p == nil {
			c.problem("a row of %q, which is no page of the run: %v", source, row)
			continue
		}
		p.rows = append(p.rows, row)
		c.metadata(p, row)
	}
	for _, p := range c.order {
		if len(p.rows) == 0 {
			continue // outcomes checks whether that is right
		}
		if len(p.rows) != len(p.truth.Rows) {
			c.problem("%s has %d rows, the truth has %d", p.truth.URL, len(p.rows),
				len(p.truth.Rows))
			continue
		}
		c.values(p)
	}
}

// metadata compares the server's own keys of a row.
func (c *check) metadata(p *page, row map[string]any) {
	for _, key := range []string{"_jobId", "_scraperJobStatusId"} {
		if row[key] != c.got.Job.ID {
			c.problem("%s: a row's %s is %v, the job is %s", p.truth.URL, key, row[key],
				c.got.Job.ID)
		}
	}
	at, _ := row["_scrapedAt"].(string)
	if _, err := time.Parse(time.RFC3339, at); err != nil {
		c.problem("%s: a row's _scrapedAt is %v", p.truth.URL, row["_scrapedAt"])
	}
	final, given := row["_finalUrl"]
	if len(p.truth.Hops) > 0 && final != p.truth.FinalURL() || len(p.truth.Hops) == 0 && given {
		c.problem("%s: a row's _finalUrl is %v, the page was found at %s", p.truth.URL, final,
			p.truth.FinalURL())
	}
}

// values compares the fields of a page's rows, in order. All rows of a changing page must come from
// one fetch.
func (c *check) values(p *page) {
	fetch := 0
	for i, row := range p.rows {
		want := p.truth.Rows[i]
		got := fieldsOf(row)
		for _, name := range c.run.Ignore {
			delete(got, name)
		}
		if p.truth.Changes {
			n, ok := synthweb.FetchOf(got)
			if !ok || n < 1 || fetch != 0 && n != fetch {
				c.problem("%s: row %d is of fetch %v, the one before it of fetch %d", p.truth.URL,
					i, got["stock"], fetch)
			}
			fetch = n
			got["stock"] = want["stock"]
		}
		if !reflect.DeepEqual(got, want) {
			c.problem("%s: row %d is %v, the truth is %v", p.truth.URL, i, got, want)
		}
	}
}

func fieldsOf(row map[string]any) synthweb.Row {
	fields := synthweb.Row{}
	for name, value := range row {
		if name[0] != '_' {
			fields[name] = value
		}
	}
	return fields
}

// errors assigns each error to its page and compares code and status.
func (c *check) errors() {
	for _, e := range c.got.Errors {
		p := c.pages[form(e.URL)]
		if p == nil {
			c.problem("an error of %q, which is no page of the run: %s", e.URL, e.Error)
			continue
		}
		p.errors = append(p.errors, e)
		if p.truth.Outcome != model.Errored {
			c.problem("%s errored with %s, the truth is delivered", e.URL, e.Error)
			continue
		}
		status := 0
		if e.Status != nil {
			status = *e.Status
		}
		if !slices.ContainsFunc(p.truth.Codes,
			func(code fault.Code) bool { return saysCode(e.Error, code) }) {
			c.problem("%s errored with %s, the truth is one of %v", e.URL, e.Error, p.truth.Codes)
		}
		if p.truth.Status != 0 && status != p.truth.Status {
			c.problem("%s errored with status %d, the truth is %d", e.URL, status, p.truth.Status)
		}
	}
}

// saysCode says whether an error's text stands for a code. The API may show the code, or its title
// with details.
func saysCode(text string, code fault.Code) bool {
	title := fault.Lookup(code).Title
	return text == string(code) || text == title || strings.HasPrefix(text, title+": ")
}

// outcomes requires that each page ended once, and that no page of a chain is missing before a
// present one.
func (c *check) outcomes() {
	for _, chain := range c.chains {
		ended := false
		for _, p := range chain.pages {
			found := len(p.errors)
			if len(p.rows) > 0 {
				found++
			}
			switch {
			case found > 1:
				c.problem("%s came to an end %d times: %d rows, %d errors", p.truth.URL, found,
					len(p.rows), len(p.errors))
			case found == 0 && !c.run.Partial:
				c.problem("%s (%s) has neither rows nor an error", p.truth.URL,
					outcomeName(p.truth.Outcome))
			case found == 1 && ended:
				c.problem("%s is there, although a page before it in its chain is missing",
					p.truth.URL)
			}
			ended = ended || found == 0
			if found > 0 && len(p.rows) > 0 {
				c.sum.Delivered++
				if _, quantity := c.charge(p); quantity == 0 {
					c.sum.Uncharged++
				}
			} else if found > 0 {
				c.sum.Errored++
			}
		}
	}
}

func outcomeName(outcome model.Outcome) string {
	switch outcome {
	case model.Delivered:
		return "delivered"
	case model.Errored:
		return "errored"
	}
	return fmt.Sprintf("outcome %d", outcome)
}

// records compares the page records with the API's results, unit by unit.
func (c *check) records() {
	if c.got.Records == nil {
		return
	}
	seen := map[model.Unit]bool{}
	for _, r := range c.got.Records {
		if seen[r.Unit] {
			c.problem("unit %v has two records", r.Unit)
		}
		seen[r.Unit] = true
		if int(r.Unit.Seq) >= len(c.chains) {
			c.problem("unit %v is of no link of the list", r.Unit)
			continue
		}
		chain := c.chains[r.Unit.Seq]
		if int(r.Unit.Page) >= len(chain.pages) {
			if form(r.URL) != chain.extra ||
				(r.Outcome != model.Empty && r.Outcome != model.Duplicate) || r.Items != 0 {
				c.problem("unit %v is a record of %s with outcome %d and %d items past the end "+
					"of its chain",
					r.Unit, r.URL, r.Outcome, r.Items)
			}
			continue
		}
		p := chain.pages[r.Unit.Page]
		price, quantity := c.charge(p)
		if form(r.URL) != form(p.truth.URL) || r.Outcome != p.truth.Outcome ||
			int(r.Items) != len(p.truth.Rows) ||
			r.PriceRow != price || r.Quantity != quantity {
			c.problem("unit %v is recorded as %s with outcome %d, %d items, %d × %q; the truth "+
				"is %s, %d, %d items, %d × %q",
				r.Unit, r.URL, r.Outcome, r.Items, r.Quantity, r.PriceRow,
				p.truth.URL, p.truth.Outcome, len(p.truth.Rows), quantity, price)
		}
		if p.truth.Outcome == model.Errored &&
			(!slices.Contains(p.truth.Codes, fault.Code(r.Code)) ||
				p.truth.Status != 0 && int(r.Status) != p.truth.Status) {
			c.problem("unit %v is recorded with %s and status %d, the truth is one of %v and %d",
				r.Unit, r.Code, r.Status, p.truth.Codes, p.truth.Status)
		}
		if int(r.Items) != len(p.rows) {
			c.problem("unit %v is recorded with %d items, and %d rows are read", r.Unit, r.Items,
				len(p.rows))
		}
	}
	for _, p := range c.order {
		unit := model.Unit{Seq: uint32(p.seq), Page: c.pageNumber(p)}
		if (len(p.rows) > 0 || len(p.errors) > 0) && !seen[unit] {
			c.problem("%s has no record", p.truth.URL)
		}
	}
}

func (c *check) pageNumber(p *page) uint32 {
	return uint32(slices.Index(c.chains[p.seq].pages, p))
}
