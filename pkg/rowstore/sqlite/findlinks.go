package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"

	"shoal.dev/shoal/pkg/filter"
	"shoal.dev/shoal/pkg/rowstore"
)

// FindSiteLinks is rowstore.Sites. It looks at all links as they stand, notes which pass by a bit
// each, and finds the page among those by its order.
func (s *Store) FindSiteLinks(ctx context.Context, q rowstore.SiteQuery, f filter.Node) (
	links []rowstore.SiteLink, total int64, err error) {
	if err := q.Check(); err != nil {
		return nil, 0, err
	}
	var passing linkSet
	doc, budget := map[string]any{}, filter.NewLinksBudget(ctx)
	all := linksRead{SiteQuery: rowstore.SiteQuery{Version: q.Version, Site: q.Site, From: q.From},
		stateless: !asksState(f)}
	err = s.siteLinks(ctx, all, func(l *rowstore.SiteLink) error {
		doc["url"], doc["title"], doc["curl"] = l.URL, l.Title, l.Curl
		doc["state"] = l.State.String()
		if filter.Match(budget, f, doc) {
			total++
			passing.add(l.Seq)
		}
		return filter.ErrOf(budget)
	})
	if err != nil || total == 0 {
		return nil, 0, err
	}
	q.Within(total)
	links, err = s.linkPage(ctx, linksRead{SiteQuery: q, among: passing})
	return links, total, err
}

// asksState reports whether a filter tests the states of links.
func asksState(f filter.Node) bool {
	asks := false
	_ = filter.Each(f, func(c filter.Compare) error { // the function never fails
		asks = asks || c.Field == "state"
		return nil
	})
	return asks
}

// linkSet is a set of links of one version by their seq, with a bit for each.
type linkSet []uint64

func (s *linkSet) add(seq uint32) {
	word := int(seq / 64)
	for len(*s) <= word {
		*s = append(*s, 0)
	}
	(*s)[word] |= 1 << (seq % 64)
}

func (s linkSet) has(seq uint32) bool {
	word := int(seq / 64)
	return word < len(s) && s[word]&(1<<(seq%64)) != 0
}

// linkPage collects one page of a set while the seqs of all links come in the order of a query. It
// skips the first skip of the set, and takes up to most of the rest.
type linkPage struct {
	among      linkSet
	skip, most int
	seqs       []uint32
}

// take takes the next seq; more is false once the page is full.
func (p *linkPage) take(seq uint32) (more bool) {
	switch {
	case !p.among.has(seq):
	case p.skip > 0:
		p.skip--
	default:
		p.seqs = append(p.seqs, seq)
	}
	return len(p.seqs) < p.most
}

// linksAmong returns the seqs of the links on a query's page, as a JSON array. It reads only seqs,
// which the index of addresses holds.
func linksAmong(ctx context.Context, conn *sql.Conn, wanted string, id int64,
	q *linksRead) (string, error) {
	page := linkPage{among: q.among, skip: q.Offset, most: q.Limit}
	rows, err := conn.QueryContext(ctx, wanted, id, q.From)
	err = each(rows, err, func(rows *sql.Rows) error {
		var seq uint32
		if err := rows.Scan(&seq); err != nil {
			return err
		}
		if !page.take(seq) {
			return errPageFull
		}
		return nil
	})
	if err != nil && !errors.Is(err, errPageFull) {
		return "", err
	}
	encoded, err := json.Marshal(page.seqs)
	return string(encoded), err
}

// errPageFull says that no more links are wanted.
var errPageFull = errors.New("the page is full")
