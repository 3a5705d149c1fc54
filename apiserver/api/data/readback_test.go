package data

import (
	"bufio"
	"encoding/csv"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/xuri/excelize/v2"

	"shoal.dev/shoal/apiserver/internal/export"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/rowstore"
	"shoal.dev/shoal/pkg/rowstore/clickhouse"
	"shoal.dev/shoal/pkg/rowstore/sqlite"
)

var readBackRows = flag.Int("readback-rows", 3_000,
	"rows that TestReadBack exports and reads back; a night takes 1,000,000")

// sheetRows is the row limit of a spreadsheet.
const sheetRows = 100_000

// TestReadBack exports rows in each format while others arrive, and reads them back. All must be
// there, unchanged and in order, and none that came later. It also tests ClickHouse if
// CLICKHOUSE_URL is set.
func TestReadBack(t *testing.T) {
	embedded, err := sqlite.Open(sqlite.Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = embedded.Close() }()
	t.Run("sqlite", func(t *testing.T) { readBack(t, embedded) })
	url := os.Getenv("CLICKHOUSE_URL")
	if url == "" {
		if os.Getenv("SHOAL_CLUSTER_SUITE") == "1" {
			t.Fatal("CLICKHOUSE_URL is not set")
		}
		return
	}
	server, err := clickhouse.Open(t.Context(), clickhouse.Config{URL: url, Node: "readback",
		Database: "readback_" + ids.Random{Now: time.Now}.New().String()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = server.Close() }()
	t.Run("clickhouse", func(t *testing.T) { readBack(t, server) })
}

func readBack(t *testing.T, store rowstore.Store) {
	job, rows := newBenchJob(), *readBackRows
	putBenchRows(t, store, job, 0, rows)
	upto, err := store.Horizon(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, format := range []export.Format{export.CSV, export.JSONL, export.Parquet, export.XLSX} {
		t.Run(string(format), func(t *testing.T) {
			want := rows
			if format == export.XLSX {
				want = min(want, sheetRows)
			}
			path := filepath.Join(t.TempDir(), "rows")
			came := exportMeanwhile(t, store, job, path, format, upto, want)
			n := 0
			for cells, err := range cellsOf(format, path) {
				if err != nil {
					t.Fatalf("row %d: %v", n, err)
				}
				for name, cell := range (benchRow{n, job.ID}).cells() {
					if cells[name] != cell {
						t.Fatalf("row %d: %s is %q, want %q", n, name, cells[name], cell)
					}
				}
				if len(cells) != 8 {
					t.Fatalf("row %d has the members %v", n, cells)
				}
				n++
			}
			if n != want {
				t.Fatalf("%d rows are read back, want %d", n, want)
			}
			t.Logf("%d rows are equal, %d came in meanwhile", n, came)
		})
	}
}

// exportMeanwhile writes rows to a file while others arrive in their group. It returns how many
// arrived.
func exportMeanwhile(t *testing.T, store rowstore.Store, job rowstore.Job, path string,
	format export.Format, upto int64, most int) (came int) {
	t.Helper()
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	later := newBenchJob()
	later.Group = job.Group
	begun, exported := make(chan struct{}), make(chan struct{})
	var others sync.WaitGroup
	others.Go(func() {
		for over := false; !over; came += 1_000 {
			putBenchRows(t, store, later, came, came+1_000)
			if came == 0 {
				close(begun)
			}
			select {
			case <-exported:
				over = true
			default:
			}
		}
	})
	<-begun
	err = export.Write(t.Context(), file, firstRows(store, job, upto, most),
		export.Options{Format: format, Disk: benchDisk{t.TempDir()}})
	close(exported)
	others.Wait()
	if err = errors.Join(err, file.Close()); err != nil {
		t.Fatal(err)
	}
	return came
}

// cellsOf reads a file's rows back, each as the texts of its members.
func cellsOf(format export.Format, path string) iter.Seq2[map[string]string, error] {
	read := map[export.Format]func(*os.File, func(map[string]string) bool) error{
		export.CSV: csvCells, export.JSONL: jsonlCells, export.Parquet: parquetCells,
		export.XLSX: sheetCells}[format]
	return func(yield func(map[string]string, error) bool) {
		file, err := os.Open(path)
		if err != nil {
			yield(nil, err)
			return
		}
		defer func() { _ = file.Close() }() // it was only read
		more := true
		err = read(file, func(cells map[string]string) bool {
			more = yield(cells, nil)
			return more
		})
		if err != nil && more {
			yield(nil, err)
		}
	}
}

// named maps column names to cells.
func named(names, cells []string) map[string]string {
	row := make(map[string]string, len(names))
	for i, name := range names {
		row[name] = cells[i]
	}
	return row
}

func csvCells(file *os.File, yield func(map[string]string) bool) error {
	table := csv.NewReader(bufio.NewReaderSize(file, 1<<20))
	names, err := table.Read()
	if err != nil {
		return err
	}
	for {
		record, err := table.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil || !yield(named(names, record)) {
			return err
		}
	}
}

func jsonlCells(file *os.File, yield func(map[string]string) bool) error {
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var members map[string]any
		if err := json.Unmarshal(lines.Bytes(), &members); err != nil {
			return err
		}
		cells := map[string]string{}
		for name, value := range members {
			cells[name] = fmt.Sprint(value)
		}
		if !yield(cells) {
			return nil
		}
	}
	return lines.Err()
}

func parquetCells(file *os.File, yield func(map[string]string) bool) error {
	info, err := file.Stat()
	if err != nil {
		return err
	}
	table, err := parquet.OpenFile(file, info.Size())
	if err != nil {
		return err
	}
	var names []string
	for _, column := range table.Root().Columns() {
		names = append(names, column.Name())
	}
	reader := parquet.NewReader(table)
	defer func() { _ = reader.Close() }() // it was only read
	rows := make([]parquet.Row, 100)
	for {
		n, err := reader.ReadRows(rows)
		for _, row := range rows[:n] {
			cells := make([]string, len(names))
			for _, value := range row {
				cells[value.Column()] = value.String()
			}
			if !yield(named(names, cells)) {
				return nil
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func sheetCells(file *os.File, yield func(map[string]string) bool) error {
	book, err := excelize.OpenReader(file)
	if err != nil {
		return err
	}
	defer func() { _ = book.Close() }() // it was only read
	rows, err := book.Rows("data")
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }() // they were only read
	var names []string
	for rows.Next() {
		cells, err := rows.Columns()
		if err != nil {
			return err
		}
		if names == nil {
			names = cells
			continue
		}
		row := named(names, cells)
		row["inStock"] = strings.ToLower(row["inStock"]) // sheets show booleans in upper case
		if !yield(row) {
			return nil
		}
	}
	return rows.Error()
}
