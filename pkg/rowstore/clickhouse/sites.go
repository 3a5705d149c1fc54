package clickhouse

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"shoal.dev/shoal/pkg/filter"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/rowstore"
)

const (
	siteLinkColumns  = `version, seq, hash, url, title, curl`
	linkStateColumns = `site, hash, state, started`

	// statedAtOnce is the most links whose states one query reads.
	statedAtOnce = 5_000
)

var (
	siteLinkTypes = typed(siteLinkColumns, "FixedString(12)", "UInt32", "UInt64", "String",
		"String", "String")
	linkStateTypes = typed(linkStateColumns, "FixedString(12)", "UInt64", "UInt8", "Int64")
)

// versions returns the versions of sites that were begun and not dropped. A database that is not
// upgraded yet has none.
func (s *Store) versions(ctx context.Context, where string) ([]rowstore.ListInfo, error) {
	return past(ctx, s, fmt.Sprintf(`SELECT version, max(count), max(state) AS reached FROM %s %s
		GROUP BY version HAVING reached < %d ORDER BY version`, s.table("siteversions"), where,
		listDropped), func(rows driver.Rows) (info rowstore.ListInfo, err error) {
		var id string
		var state uint8
		err = rows.Scan(&id, &info.Count, &state)
		copy(info.ID[:], id)
		info.Finished = state == listFinished
		return info, err
	})
}

// markSite records that a version has reached a state.
func (s *Store) markSite(ctx context.Context, version ids.ID, count uint32, state int) error {
	return s.exec(ctx, callTimeout,
		fmt.Sprintf(`INSERT INTO %s (version, count, state) VALUES (%s, %d, %d)`,
			s.table("siteversions"), id(version), count, state))
}

// PutSiteLinks implements rowstore.Sites. The first part marks the version, so that it is known
// even if no other follows.
func (s *Store) PutSiteLinks(ctx context.Context, version ids.ID,
	links []rowstore.SiteLink) error {
	if len(links) == 0 {
		return nil
	}
	err := error(nil)
	if links[0].Seq == 0 {
		err = s.markSite(ctx, version, 0, listBegun)
	}
	if err == nil {
		err = s.fill(ctx, "sitelinks", siteLinkColumns, siteLinkTypes, len(links),
			func(i int) []any {
				l := &links[i]
				return []any{version[:], l.Seq, l.Hash, l.URL, l.Title, l.Curl}
			})
	}
	if err != nil {
		return fmt.Errorf("row store: links of site version %s: %w", version, err)
	}
	s.point("rowstore.site_after_part")
	return nil
}

// FinishSite implements rowstore.Sites. A version that was dropped meanwhile is unknown.
func (s *Store) FinishSite(ctx context.Context, version ids.ID, count uint32) error {
	s.point("rowstore.list_before_finish")
	err := s.markSite(ctx, version, count, listFinished)
	if err == nil {
		err = s.finishedSite(ctx, version)
	}
	if err != nil {
		return fmt.Errorf("row store: finish site version %s: %w", version, err)
	}
	s.point("rowstore.list_after_finish")
	return nil
}

// finishedSite fails unless a version is finished.
func (s *Store) finishedSite(ctx context.Context, version ids.ID) error {
	infos, err := s.versions(ctx, `WHERE version = `+id(version))
	if err == nil && (len(infos) == 0 || !infos[0].Finished) {
		err = rowstore.ErrListUnknown
	}
	return err
}

// linkOrders are the columns that links are sorted by.
var linkOrders = map[rowstore.LinkOrder]string{rowstore.BySeq: "seq", rowstore.ByURL: "url",
	rowstore.ByTitle: "title", rowstore.ByCurl: "curl"}

// SiteLinks implements rowstore.Sites.
func (s *Store) SiteLinks(ctx context.Context, q rowstore.SiteQuery) (links []rowstore.SiteLink,
	err error) {
	err = s.ofSite(ctx, q, func() error {
		links, err = s.siteLinks(ctx, q, `1`)
		return err
	})
	return links, err
}

// FindSiteLinks implements rowstore.Sites.
func (s *Store) FindSiteLinks(ctx context.Context, q rowstore.SiteQuery, f filter.Node) (
	links []rowstore.SiteLink, total int64, err error) {
	err = s.ofSite(ctx, q, func() error {
		where := s.printLinkFilter(q.Site, f)
		counts, err := read(ctx, s, `SELECT count()`+s.linksFrom(q, where)+` SETTINGS `+linkSettings,
			scanBlock)
		if err != nil || counts[0] == 0 {
			return err
		}
		total = int64(counts[0])
		q.Within(total)
		links, err = s.siteLinks(ctx, q, where)
		return err
	})
	return links, total, err
}

// ofSite checks the query, calls read, and checks before and after it that the version is finished.
func (s *Store) ofSite(ctx context.Context, q rowstore.SiteQuery, read func() error) error {
	if err := q.Check(); err != nil {
		return err
	}
	err := s.finishedSite(ctx, q.Version)
	if err == nil {
		err = read()
	}
	if err == nil { // a version dropped meanwhile may have lost links
		err = s.finishedSite(ctx, q.Version)
	}
	if err != nil {
		return fmt.Errorf("row store: links of site version %s: %w", q.Version, err)
	}
	return nil
}

// linksFrom returns the FROM and WHERE of a query's links, without its page.
func (s *Store) linksFrom(q rowstore.SiteQuery, where string) string {
	return fmt.Sprintf(` FROM %s FINAL WHERE version = %s AND seq >= %d AND %s`,
		s.table("sitelinks"), id(q.Version), q.From, where)
}

func (s *Store) siteLinks(ctx context.Context, q rowstore.SiteQuery, where string) (
	[]rowstore.SiteLink, error) {
	direction := ``
	if q.Descending {
		direction = ` DESC`
	}
	query := `SELECT seq, hash, url, title, curl` + s.linksFrom(q, where) +
		fmt.Sprintf(` ORDER BY %s%s, seq%[2]s LIMIT %d OFFSET %d SETTINGS %s`, linkOrders[q.By],
			direction, q.Limit, q.Offset, linkSettings)
	links, err := read(ctx, s, query, func(rows driver.Rows) (l rowstore.SiteLink, err error) {
		return l, rows.Scan(&l.Seq, &l.Hash, &l.URL, &l.Title, &l.Curl)
	})
	if err != nil {
		return nil, err
	}
	for some := range slices.Chunk(links, statedAtOnce) {
		if err := s.addStates(ctx, q.Site, some); err != nil {
			return nil, err
		}
	}
	return links, nil
}

// addStates looks up the states of links.
func (s *Store) addStates(ctx context.Context, site ids.ID, links []rowstore.SiteLink) error {
	type stated struct {
		hash  uint64
		state uint8
	}
	found, err := read(ctx, s, fmt.Sprintf(`SELECT hash, argMax(state, started) FROM %s
		WHERE site = %s AND hash IN (%s) GROUP BY hash`, s.table("linkstates"), id(site),
		join(links, func(l rowstore.SiteLink) string { return strconv.FormatUint(l.Hash, 10) })),
		func(rows driver.Rows) (one stated, err error) {
			return one, rows.Scan(&one.hash, &one.state)
		})
	if err != nil {
		return err
	}
	states := make(map[uint64]rowstore.LinkState, len(found))
	for _, one := range found {
		states[one.hash] = rowstore.LinkState(one.state)
	}
	for i := range links {
		links[i].State = states[links[i].Hash]
	}
	return nil
}

// PutLinkStates implements rowstore.Sites. The table's engine and all reads take the newest.
func (s *Store) PutLinkStates(ctx context.Context, site ids.ID, started int64,
	states []rowstore.LinkOutcome) error {
	err := s.fill(ctx, "linkstates", linkStateColumns, linkStateTypes, len(states),
		func(i int) []any {
			return []any{site[:], states[i].Hash, uint8(states[i].State), started}
		})
	if err != nil {
		return fmt.Errorf("row store: states of links of site %s: %w", site, err)
	}
	return nil
}

// AllSites implements rowstore.Sites.
func (s *Store) AllSites(ctx context.Context) ([]rowstore.ListInfo, error) {
	all, err := s.versions(ctx, ``)
	if err != nil {
		return nil, fmt.Errorf("row store: versions of sites: %w", err)
	}
	return all, nil
}

// StatedSites implements rowstore.Sites.
func (s *Store) StatedSites(ctx context.Context) ([]ids.ID, error) {
	all, err := past(ctx, s, `SELECT DISTINCT site FROM `+s.table("linkstates")+` ORDER BY site`,
		func(rows driver.Rows) (site ids.ID, err error) {
			var id string
			err = rows.Scan(&id)
			copy(site[:], id)
			return site, err
		})
	if err != nil {
		return nil, fmt.Errorf("row store: sites with states of links: %w", err)
	}
	return all, nil
}

// DropSite implements rowstore.Sites. It makes the version unreadable before it removes the links.
func (s *Store) DropSite(ctx context.Context, version ids.ID) error {
	err := s.markSite(ctx, version, 0, listDropped)
	if err == nil {
		err = s.exec(ctx, removeTimeout,
			`DELETE FROM `+s.table("sitelinks")+` WHERE version = `+id(version))
	}
	if err != nil {
		return fmt.Errorf("row store: drop site version %s: %w", version, err)
	}
	return nil
}

// DropLinkStates implements rowstore.Sites.
func (s *Store) DropLinkStates(ctx context.Context, site ids.ID) error {
	err := s.exec(ctx, removeTimeout,
		`DELETE FROM `+s.table("linkstates")+` WHERE site = `+id(site))
	if err != nil {
		return fmt.Errorf("row store: drop states of links of site %s: %w", site, err)
	}
	return nil
}
