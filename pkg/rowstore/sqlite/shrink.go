package sqlite

import (
	"context"
	"database/sql"
	"fmt"
)

const (
	// shrunkAtOnce are the pages of the file that one turn of the writer gives back: 8 MB.
	shrunkAtOnce = 1_000
	// maxRewritten is how many pages of the file may be in use for an older one to be rewritten
	// when it is opened. It is a gigabyte, some 10 s.
	maxRewritten = 131_072
)

// pragma reads a number.
func pragma(ctx context.Context, conn *sql.Conn, name string) (value int64, err error) {
	err = conn.QueryRowContext(ctx, `PRAGMA `+name).Scan(&value)
	return value, err
}

// beShrinkable has the file give back pages that are free, which a file has to be told before its
// first table is made. One of an earlier release is rewritten for it, once, unless it is large or
// the disk has no room. Then it works as before, and later rows fill its free pages.
func beShrinkable(ctx context.Context, conn *sql.Conn) error {
	mode, err := pragma(ctx, conn, `auto_vacuum`)
	if err != nil || mode != 0 {
		return err
	}
	pages, err := pragma(ctx, conn, `page_count`)
	if err != nil {
		return err
	}
	free, err := pragma(ctx, conn, `freelist_count`)
	if err != nil || pages-free > maxRewritten {
		return err
	}
	if _, err := conn.ExecContext(ctx, `PRAGMA auto_vacuum = INCREMENTAL`); err != nil || pages == 0 {
		return err
	}
	_, _ = conn.ExecContext(ctx, `VACUUM`) // it is all or nothing
	return nil
}

// shrink gives the file's free pages back to the disk, some in each turn.
func (s *Store) shrink(ctx context.Context) error {
	w := s.writer
	for free := int64(1); free > 0; {
		err := w.bare(ctx, w.bulk, func() error {
			before, err := pragma(ctx, w.conn, `freelist_count`)
			if err != nil || before == 0 {
				free = 0
				return err
			}
			if err := w.query(func(*sql.Rows) error { return nil },
				fmt.Sprintf(`PRAGMA incremental_vacuum(%d)`, shrunkAtOnce)); err != nil {
				return err
			}
			if free, err = pragma(ctx, w.conn, `freelist_count`); free == before {
				free = 0 // a file that cannot
			}
			return err
		})
		if err != nil {
			return fmt.Errorf("row store: give space back: %w", err)
		}
	}
	// What is in the log already may take long to come into the file while little is written.
	err := w.bare(ctx, w.bulk, func() error {
		return w.query(func(*sql.Rows) error { return nil }, `PRAGMA wal_checkpoint(PASSIVE)`)
	})
	if err != nil {
		return fmt.Errorf("row store: give space back: %w", err)
	}
	return nil
}
