package sqlite

import (
	"context"
	"database/sql"
	"fmt"
)

const (
	// shrunkAtOnce is how many file pages one turn of the writer gives back: 8 MB.
	shrunkAtOnce = 1_000
	// maxRewritten is the most file pages in use with which Open still rewrites an older file: a
	// gigabyte, about 10 s.
	maxRewritten = 131_072
)

// pragma reads a numeric pragma.
func pragma(ctx context.Context, conn *sql.Conn, name string) (value int64, err error) {
	err = conn.QueryRowContext(ctx, `PRAGMA `+name).Scan(&value)
	return value, err
}

// beShrinkable lets the file give back free pages, which must be set before its first table is
// made. A file of an earlier release is rewritten once, unless it is large or the disk is full.
// Otherwise it works as before, and later rows fill its free pages.
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
	_, _ = conn.ExecContext(ctx, `VACUUM`) // all or nothing, so its error is ignored
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
				free = 0 // this file cannot shrink
			}
			return err
		})
		if err != nil {
			return fmt.Errorf("row store: give space back: %w", err)
		}
	}
	// While little is written, the write-ahead log may otherwise stay long without a checkpoint.
	err := w.bare(ctx, w.bulk, func() error {
		return w.query(func(*sql.Rows) error { return nil }, `PRAGMA wal_checkpoint(PASSIVE)`)
	})
	if err != nil {
		return fmt.Errorf("row store: give space back: %w", err)
	}
	return nil
}
