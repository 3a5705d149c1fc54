package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/bits"
	"strings"
	"sync"
	"sync/atomic"

	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/reading"
)

var errClosed = errors.New("row store: closed")

// writer owns the only connection that writes. Writes reach it as turns, each of which is one
// transaction. Turns come in two lanes, which alternate while both have turns waiting. So a batch
// of pages waits for at most one chunk of a list or removal, and neither lane starves.
type writer struct {
	db    *sql.DB
	conn  *sql.Conn
	point func(name string)

	pages chan *turn // ingest
	bulk  chan *turn // list intake, removals
	quit  chan struct{}
	ended chan struct{}
	stop  sync.Once

	horizon atomic.Int64 // newest committed place

	// The rest belongs to the goroutine that runs turns.
	prepared map[string]*sql.Stmt
	place    int64 // newest assigned place
	// Seals under preparation, by job; the job's pages are dropped meanwhile
	sealing map[ids.ID]int
}

type turn struct {
	write func() error
	done  chan struct{} // closed when the turn is over

	err      error          // set then
	panicked *reading.Panic // set then; raised in the goroutine that waits for the turn
}

// run runs the turn. A panic in it does not harm the writer: transact rolls back.
func (t *turn) run() {
	defer close(t.done)
	t.panicked = reading.Catch(func() { t.err = t.write() })
}

func openWriter(db *sql.DB, point func(string)) (*writer, error) {
	ctx := context.Background()
	db.SetMaxOpenConns(1)
	conn, err := db.Conn(ctx)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	w := &writer{
		db: db, conn: conn, point: point,
		pages: make(chan *turn), bulk: make(chan *turn), quit: make(chan struct{}),
		ended:    make(chan struct{}),
		prepared: map[string]*sql.Stmt{}, sealing: map[ids.ID]int{},
	}
	err = migrate(ctx, conn)
	if err == nil {
		err = conn.QueryRowContext(ctx, `SELECT place FROM horizon`).Scan(&w.place)
	}
	if err != nil {
		return nil, errors.Join(err, conn.Close(), db.Close())
	}
	w.horizon.Store(w.place)
	if w.point == nil {
		w.point = func(string) {}
	}
	go w.run()
	return w, nil
}

// close lets the turn under way end and starts no other. Idempotent.
func (w *writer) close() (err error) {
	w.stop.Do(func() {
		close(w.quit)
		<-w.ended
		for _, statement := range w.prepared {
			err = errors.Join(err, statement.Close())
		}
		err = errors.Join(err, w.conn.Close(), w.db.Close())
	})
	return err
}

func (w *writer) run() {
	defer close(w.ended)
	for {
		select {
		case <-w.quit:
			return
		default:
		}
		served := serve(w.pages)
		served = serve(w.bulk) || served
		if served {
			continue
		}
		select {
		case t := <-w.pages:
			t.run()
		case t := <-w.bulk:
			t.run()
		case <-w.quit:
			return
		}
	}
}

// serve runs a turn of the lane if one waits.
func serve(lane chan *turn) bool {
	select {
	case t := <-lane:
		t.run()
		return true
	default:
		return false
	}
}

// do takes a turn in a lane and runs write in a transaction. ctx only ends the wait for the turn: a
// turn that has begun runs to its end, so that the outcome is always known.
func (w *writer) do(ctx context.Context, lane chan *turn, write func() error) error {
	return w.bare(ctx, lane, func() error { return w.transact(write) })
}

// bare is do without a transaction.
func (w *writer) bare(ctx context.Context, lane chan *turn, write func() error) error {
	t := &turn{write: write, done: make(chan struct{})}
	select {
	case lane <- t:
		<-t.done
		if t.panicked != nil {
			panic(t.panicked)
		}
		return t.err
	case <-ctx.Done():
		return fmt.Errorf("row store: wait to write: %w", ctx.Err())
	case <-w.quit:
		return errClosed
	}
}

func (w *writer) transact(write func() error) error {
	if _, err := w.exec("BEGIN IMMEDIATE"); err != nil {
		return fmt.Errorf("row store: begin: %w", err)
	}
	var err error
	if caught := reading.Catch(func() { err = write() }); caught != nil {
		_, _ = w.exec("ROLLBACK")
		panic(caught)
	}
	if err == nil {
		w.point("rowstore.before_commit")
		_, err = w.exec("COMMIT")
	}
	if err != nil {
		// After some errors SQLite has already rolled back and refuses ROLLBACK. Only the first
		// error counts.
		_, _ = w.exec("ROLLBACK")
		return fmt.Errorf("row store: write: %w", err)
	}
	w.horizon.Store(w.place)
	w.point("rowstore.after_commit")
	return nil
}

// statement prepares each text once for the writer's life; there are few texts.
func (w *writer) statement(text string) (*sql.Stmt, error) {
	if statement, ok := w.prepared[text]; ok {
		return statement, nil
	}
	statement, err := w.conn.PrepareContext(context.Background(), text)
	if err != nil {
		return nil, fmt.Errorf("prepare %q: %w", text, err)
	}
	w.prepared[text] = statement
	return statement, nil
}

// exec runs a statement and returns how many rows it changed.
func (w *writer) exec(text string, args ...any) (int64, error) {
	statement, err := w.statement(text)
	if err != nil {
		return 0, err
	}
	result, err := statement.Exec(args...)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

// query calls visit for each row of a result.
func (w *writer) query(visit func(rows *sql.Rows) error, text string, args ...any) error {
	statement, err := w.statement(text)
	if err != nil {
		return err
	}
	rows, err := statement.Query(args...)
	return each(rows, err, visit)
}

// insert adds rows to a table, several per statement; columns are the names of its columns. OR
// ROLLBACK spares SQLite the undo of a single statement: any error here ends the transaction
// anyway.
func (w *writer) insert(table string, columns string, values []any) error {
	const most = 64
	width := 1 + strings.Count(columns, ",")
	for len(values) > 0 {
		n := len(values) / width
		if n >= most {
			n = most
		} else {
			n = 1 << (bits.Len(uint(n)) - 1) // powers of two: few statement texts
		}
		row := "(?" + strings.Repeat(",?", width-1) + ")"
		text := "INSERT OR ROLLBACK INTO " + table + " (" + columns + ") VALUES " + row +
			strings.Repeat(","+row, n-1)
		if _, err := w.exec(text, values[:n*width]...); err != nil {
			return err
		}
		values = values[n*width:]
	}
	return nil
}

// each calls visit for each row, and closes rows.
func each(rows *sql.Rows, err error, visit func(rows *sql.Rows) error) error {
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }() // rows.Err returns the error
	for rows.Next() {
		if err := visit(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}
