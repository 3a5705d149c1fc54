package sqlite

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"shoal.dev/shoal/pkg/rowstore"
)

const (
	// fileName is the database in the store's directory.
	fileName = "rows.db"
	// unplaced ends the name of a copy that Place has not checked yet.
	unplaced = ".part"
	// copyPart is how many bytes of a copy are written at once.
	copyPart = 256 << 10

	selectSize = `SELECT page_count * page_size FROM pragma_page_count, pragma_page_size`
)

var _ rowstore.Copied = (*Store)(nil)

// Size implements rowstore.Copied.
func (s *Store) Size(ctx context.Context) (size int64, err error) {
	err = view(ctx, s.loop, func(conn *sql.Conn) error {
		return conn.QueryRowContext(context.Background(), selectSize).Scan(&size)
	})
	if err != nil {
		return 0, fmt.Errorf("row store: size: %w", err)
	}
	return size, nil
}

// Copy implements rowstore.Copied. It reads the file's pages in one transaction. So it needs no
// space on the disk, but until it ends the write-ahead log only grows.
func (s *Store) Copy(ctx context.Context, to io.Writer) error {
	parts := bufio.NewWriterSize(pointed{to, s.writer.point}, copyPart)
	err := view(ctx, s.copies, func(conn *sql.Conn) error {
		rows, err := conn.QueryContext(context.Background(), `SELECT data FROM sqlite_dbpage`)
		return each(rows, err, func(rows *sql.Rows) error {
			var page sql.RawBytes
			if err := rows.Scan(&page); err != nil {
				return err
			}
			if _, err := parts.Write(page); err != nil {
				return err
			}
			return ctx.Err()
		})
	})
	if err == nil {
		err = parts.Flush()
	}
	if err != nil {
		return fmt.Errorf("row store: copy: %w", err)
	}
	return nil
}

// pointed passes a point before each write.
type pointed struct {
	to    io.Writer
	point func(name string)
}

func (p pointed) Write(data []byte) (int, error) {
	p.point("rowstore.within_copy")
	return p.to.Write(data)
}

// Place makes a copy the store of a directory that has none. The copy gets its name there once it
// is whole and durable. Place calls point, unless it is nil, at "rowstore.before_place" and
// "rowstore.after_place".
func Place(ctx context.Context, copied io.Reader, dir string, point func(name string)) error {
	if point == nil {
		point = func(string) {}
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("row store: %w", err)
	}
	path := filepath.Join(dir, fileName)
	for _, suffix := range []string{"", "-wal", "-shm"} { // an old log would be applied to the copy
		if _, err := os.Lstat(path + suffix); !errors.Is(err, fs.ErrNotExist) {
			return errors.Join(fmt.Errorf("%s has a row store: an empty directory takes a copy",
				dir), err)
		}
	}
	part := path + unplaced
	defer func() { _ = os.Remove(part) }() // a placed copy has been renamed by then
	if err := write(part, copied); err != nil {
		return fmt.Errorf("row store: %w", err)
	}
	if err := check(ctx, part); err != nil {
		return fmt.Errorf("not a whole copy of a row store: %w", err)
	}
	point("rowstore.before_place")
	if err := os.Rename(part, path); err != nil {
		return fmt.Errorf("row store: %w", err)
	}
	if err := syncDir(dir); err != nil {
		return fmt.Errorf("row store: %w", err)
	}
	point("rowstore.after_place")
	return nil
}

// write writes a durable file.
func write(path string, from io.Reader) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	if _, err = io.Copy(file, from); err == nil {
		err = file.Sync()
	}
	return errors.Join(err, file.Close())
}

// syncDir makes the names in a directory durable.
func syncDir(dir string) error {
	folder, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}

// check reads a whole copy, without changing it.
func check(ctx context.Context, path string) error {
	engine, err := newDriver(newPatterns())
	if err != nil {
		return err
	}
	db := sql.OpenDB(connector{engine, readDSN(path) + "&immutable=1"})
	db.SetMaxOpenConns(1)
	return errors.Join(checkFile(ctx, db, path), db.Close())
}

func checkFile(ctx context.Context, db *sql.DB, path string) error {
	var size, place int64
	if err := db.QueryRowContext(ctx, selectSize).Scan(&size); err != nil {
		return err
	}
	if info, err := os.Stat(path); err != nil || info.Size() != size { // SQLite fills a cut page up
		return errors.Join(errors.New("it is cut off"), err)
	}
	var found string
	if err := db.QueryRowContext(ctx, `PRAGMA quick_check(1)`).Scan(&found); err != nil {
		return err
	}
	if found != "ok" {
		return errors.New(found)
	}
	return db.QueryRowContext(ctx, `SELECT place FROM horizon`).Scan(&place)
}
