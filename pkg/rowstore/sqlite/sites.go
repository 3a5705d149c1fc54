package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/rowstore"
)

// sitesSchema is outside the schema versions, like the archive's.
const sitesSchema = `
CREATE TABLE IF NOT EXISTS site_versions (
	id       INTEGER PRIMARY KEY AUTOINCREMENT,
	version  BLOB NOT NULL UNIQUE,
	count    INTEGER NOT NULL DEFAULT 0,
	finished INTEGER NOT NULL DEFAULT 0
);
-- version is site_versions.id. hash is of the canonical address.
CREATE TABLE IF NOT EXISTS site_links (
	version INTEGER NOT NULL,
	seq     INTEGER NOT NULL,
	hash    INTEGER NOT NULL,
	url     TEXT NOT NULL,
	title   TEXT NOT NULL,
	curl    TEXT NOT NULL,
	PRIMARY KEY (version, seq)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS site_links_url ON site_links (version, url, seq);
CREATE TABLE IF NOT EXISTS link_states (
	site    BLOB NOT NULL,
	hash    INTEGER NOT NULL,
	state   INTEGER NOT NULL,
	started INTEGER NOT NULL, -- Unix microseconds, of the run
	PRIMARY KEY (site, hash)
) WITHOUT ROWID;
`

const (
	// Limits of one turn of the writer: linksInTurn written, droppedLinks removed.
	linksInTurn  = 2_000
	droppedLinks = 5_000

	selectSite = `SELECT id, count, finished FROM site_versions WHERE version = ?`
)

// siteVersion finds a version within the writer's turn; an unknown one has id 0.
func (w *writer) siteVersion(version ids.ID) (id int64, finished bool, err error) {
	var count uint32
	err = w.query(func(rows *sql.Rows) error { return rows.Scan(&id, &count, &finished) },
		selectSite, version[:])
	return id, finished, err
}

// PutSiteLinks implements rowstore.Sites.
func (s *Store) PutSiteLinks(ctx context.Context, version ids.ID,
	links []rowstore.SiteLink) error {
	w := s.writer
	for len(links) > 0 {
		some := links[:min(len(links), linksInTurn)]
		links = links[len(some):]
		err := w.do(ctx, w.bulk, func() error { return w.putSiteLinks(version, some) })
		if err != nil {
			return fmt.Errorf("row store: links of site version %s: %w", version, err)
		}
	}
	w.point("rowstore.site_after_part")
	return nil
}

func (w *writer) putSiteLinks(version ids.ID, links []rowstore.SiteLink) error {
	if _, err := w.exec(`INSERT OR IGNORE INTO site_versions (version) VALUES (?)`,
		version[:]); err != nil {
		return err
	}
	id, finished, err := w.siteVersion(version)
	if err != nil || finished {
		return errors.Join(err, errFinished(finished))
	}
	for i := range links {
		l := &links[i]
		if _, err := w.exec(`INSERT OR REPLACE INTO site_links (version, seq, hash, url, title,
			curl) VALUES (?, ?, ?, ?, ?, ?)`, id, l.Seq, int64(l.Hash), l.URL, l.Title,
			l.Curl); err != nil {
			return err
		}
	}
	return nil
}

func errFinished(finished bool) error {
	if finished {
		return errors.New("the version is finished")
	}
	return nil
}

// FinishSite implements rowstore.Sites.
func (s *Store) FinishSite(ctx context.Context, version ids.ID, count uint32) error {
	w := s.writer
	w.point("rowstore.list_before_finish")
	err := w.do(ctx, w.bulk, func() error {
		_, err := w.exec(`INSERT INTO site_versions (version, count, finished) VALUES (?, ?, 1)
			ON CONFLICT (version) DO UPDATE SET count = excluded.count, finished = 1`, version[:],
			count)
		return err
	})
	if err != nil {
		return fmt.Errorf("row store: finish site version %s: %w", version, err)
	}
	w.point("rowstore.list_after_finish")
	return nil
}

// linkOrders are the columns that links are sorted by.
var linkOrders = map[rowstore.LinkOrder]string{rowstore.BySeq: "seq", rowstore.ByURL: "url",
	rowstore.ByTitle: "title", rowstore.ByCurl: "curl"}

// SiteLinks is rowstore.Sites.
func (s *Store) SiteLinks(ctx context.Context, q rowstore.SiteQuery) ([]rowstore.SiteLink, error) {
	if err := q.Check(); err != nil {
		return nil, err
	}
	return s.linkPage(ctx, linksRead{SiteQuery: q})
}

// linkPage returns the links of a read. Whoever works with them keeps no connection.
func (s *Store) linkPage(ctx context.Context, q linksRead) (links []rowstore.SiteLink, err error) {
	err = s.siteLinks(ctx, q, func(l *rowstore.SiteLink) error {
		links = append(links, *l)
		return nil
	})
	return links, err
}

// linksRead is a query with what only a search asks for. A search reads all: its Limit is 0.
type linksRead struct {
	rowstore.SiteQuery
	among     linkSet // only links in this set; nil: all
	stateless bool    // do not read the states
}

func (s *Store) siteLinks(ctx context.Context, q linksRead,
	visit func(*rowstore.SiteLink) error) error {
	direction := ``
	if q.Descending {
		direction = ` DESC`
	}
	most := q.Limit
	if most == 0 {
		most = -1
	}
	order := linkOrders[q.By] + direction
	if q.By != rowstore.BySeq {
		order += `, seq` + direction
	}
	state := `coalesce((SELECT state FROM link_states AS s WHERE s.site = ? AND s.hash = l.hash), 0)`
	if q.stateless {
		state = `coalesce(0, ?)`
	}
	err := view(ctx, s.reads, func(conn *sql.Conn) error {
		var id int64
		var count uint32
		var finished bool
		err := conn.QueryRowContext(ctx, selectSite, q.Version[:]).Scan(&id, &count, &finished)
		if errors.Is(err, sql.ErrNoRows) || err == nil && !finished {
			err = rowstore.ErrListUnknown
		}
		if err != nil {
			return err
		}
		// The page is found by its sort column alone. Only for its links, the other columns and the
		// states are looked up.
		wanted := `SELECT seq FROM site_links WHERE version = ? AND seq >= ? ORDER BY ` + order
		page, args := `(`+wanted+limit+` OFFSET CAST(? AS INTEGER))`, []any{q.Site[:], id, q.From, most,
			q.Offset}
		if q.among != nil {
			seqs, err := linksAmong(ctx, conn, wanted, id, &q)
			if err != nil {
				return err
			}
			page, args = `(SELECT value AS seq FROM json_each(?))`, []any{q.Site[:], seqs}
		}
		from := page + ` AS page CROSS JOIN site_links AS l ON l.version = ? AND l.seq = page.seq`
		args = append(args, id)
		if q.By == rowstore.BySeq && q.among == nil { // stored in this order
			from = `site_links AS l WHERE l.version = ? AND l.seq >= ? ORDER BY l.` + order + limit +
				` OFFSET CAST(? AS INTEGER)`
			args = args[:len(args)-1]
		}
		rows, err := conn.QueryContext(ctx, `SELECT l.seq, l.hash, l.url, l.title, l.curl, `+state+
			` FROM `+from, args...)
		var link rowstore.SiteLink
		return each(rows, err, func(rows *sql.Rows) error {
			var hash int64
			if err := rows.Scan(&link.Seq, &hash, &link.URL, &link.Title, &link.Curl,
				&link.State); err != nil {
				return err
			}
			link.Hash = uint64(hash)
			return visit(&link)
		})
	})
	if err != nil {
		return fmt.Errorf("row store: links of site version %s: %w", q.Version, err)
	}
	return nil
}

// PutLinkStates implements rowstore.Sites.
func (s *Store) PutLinkStates(ctx context.Context, site ids.ID, started int64,
	states []rowstore.LinkOutcome) error {
	w := s.writer
	for len(states) > 0 {
		some := states[:min(len(states), linksInTurn)]
		states = states[len(some):]
		err := w.do(ctx, w.bulk, func() error {
			for _, one := range some {
				if _, err := w.exec(`INSERT INTO link_states (site, hash, state, started)
					VALUES (?, ?, ?, ?) ON CONFLICT (site, hash) DO UPDATE
					SET state = excluded.state, started = excluded.started
					WHERE excluded.started >= link_states.started`, site[:], int64(one.Hash),
					one.State, started); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("row store: states of links of site %s: %w", site, err)
		}
	}
	return nil
}

// AllSites implements rowstore.Sites.
func (s *Store) AllSites(ctx context.Context) ([]rowstore.ListInfo, error) {
	var all []rowstore.ListInfo
	rows, err := s.loop.QueryContext(ctx,
		`SELECT version, count, finished FROM site_versions ORDER BY id`)
	err = each(rows, err, func(rows *sql.Rows) error {
		var info rowstore.ListInfo
		var id sql.RawBytes
		err := rows.Scan(&id, &info.Count, &info.Finished)
		copy(info.ID[:], id)
		all = append(all, info)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("row store: versions of sites: %w", err)
	}
	return all, nil
}

// StatedSites implements rowstore.Sites. It skips from site to site by the key.
func (s *Store) StatedSites(ctx context.Context) ([]ids.ID, error) {
	var all []ids.ID
	rows, err := s.loop.QueryContext(ctx, `WITH RECURSIVE found (site) AS (
			SELECT min(site) FROM link_states
			UNION ALL
			SELECT (SELECT min(site) FROM link_states WHERE site > found.site) FROM found
			WHERE found.site IS NOT NULL
		) SELECT site FROM found WHERE site IS NOT NULL`)
	err = each(rows, err, func(rows *sql.Rows) error {
		var id sql.RawBytes
		err := rows.Scan(&id)
		all = append(all, ids.ID(id))
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("row store: sites with states of links: %w", err)
	}
	return all, nil
}

// DropSite implements rowstore.Sites. Its first turn makes the version unreadable.
func (s *Store) DropSite(ctx context.Context, version ids.ID) error {
	w := s.writer
	for more := true; more; {
		err := w.do(ctx, w.bulk, func() error {
			id, _, err := w.siteVersion(version)
			if more = id != 0 && err == nil; !more {
				return err
			}
			if _, err := w.exec(`UPDATE site_versions SET finished = 0 WHERE id = ?`,
				id); err != nil {
				return err
			}
			removed, err := w.exec(`DELETE FROM site_links WHERE version = ? AND seq IN
				(SELECT seq FROM site_links WHERE version = ? LIMIT ?)`, id, id, droppedLinks)
			if err != nil || removed == droppedLinks {
				return err
			}
			more = false
			_, err = w.exec(`DELETE FROM site_versions WHERE id = ?`, id)
			return err
		})
		if err != nil {
			return fmt.Errorf("row store: drop site version %s: %w", version, err)
		}
	}
	return nil
}

// DropLinkStates implements rowstore.Sites.
func (s *Store) DropLinkStates(ctx context.Context, site ids.ID) error {
	w := s.writer
	for more := true; more; {
		err := w.do(ctx, w.bulk, func() error {
			removed, err := w.exec(`DELETE FROM link_states WHERE site = ? AND hash IN
				(SELECT hash FROM link_states WHERE site = ? LIMIT ?)`, site[:], site[:],
				droppedLinks)
			more = removed == droppedLinks
			return err
		})
		if err != nil {
			return fmt.Errorf("row store: drop states of links of site %s: %w", site, err)
		}
	}
	return nil
}
