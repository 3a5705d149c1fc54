package export

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
)

// draft keeps csv records with the columns that were known when each was made. Most records have
// all columns and are copied later. The others are widened.
type draft struct {
	spool
	grown  []growth
	order  []int    // place of each known column in a record, by order of discovery
	record []string // scratch space for one
}

// growth marks where the number of columns grew.
type growth struct {
	at      int64 // first byte of the records with these columns
	columns int
}

func (d *draft) add(columns []column, cells []cell) {
	if d.gone {
		return
	}
	if len(d.grown) == 0 || len(columns) > len(d.order) {
		d.grown = append(d.grown, growth{d.size(), len(columns)})
		d.order = orderOf(d.order[:0], columns, true)
		d.record = append(d.record, make([]string, len(columns)-len(d.record))...)
	}
	clear(d.record)
	for _, c := range cells {
		d.record[d.order[c.place]] = c.value
	}
	if d.last = appendRecord(d.last, d.record); d.full() {
		d.put(nil)
	}
}

// writeTo writes the records with all columns.
func (d *draft) writeTo(ctx context.Context, w *bufio.Writer, t *table) error {
	in := bufio.NewReaderSize(io.MultiReader(d.filed(), bytes.NewReader(d.last)), 64<<10)
	clear(d.record)
	for i, g := range d.grown {
		end := d.size()
		if i+1 < len(d.grown) {
			end = d.grown[i+1].at
		}
		records := &recordReader{ctx: ctx, in: in, left: end - g.at}
		var err error
		if g.columns == len(t.columns) {
			_, err = io.Copy(w, records)
		} else {
			err = records.widen(w, d.record, t, g.columns)
		}
		if err != nil {
			return fmt.Errorf("write drafted rows: %w", err)
		}
	}
	return nil
}

// recordReader reads drafted records.
type recordReader struct {
	ctx  context.Context
	in   *bufio.Reader
	left int64
	cell []byte
}

// Read implements io.Reader.
func (r *recordReader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	if r.left == 0 {
		return 0, io.EOF
	}
	n, err := r.in.Read(p[:min(int64(len(p)), r.left)])
	r.left -= int64(n)
	return n, err
}

// widen writes records that have only the first columns discovered. record holds empty cells for
// the other columns.
func (r *recordReader) widen(w *bufio.Writer, record []string, t *table, columns int) error {
	place := make([]int, columns)
	for discovered, at := range orderOf(nil, t.reader.columns[:columns], true) {
		place[at] = t.order[discovered]
	}
	var line []byte
	for r.left > 0 {
		if err := r.ctx.Err(); err != nil {
			return err
		}
		for at, ended := 0, false; !ended; at++ {
			text, last, err := r.readCell()
			if err != nil {
				return err
			}
			if ended = last; at < columns {
				record[place[at]] = text
			}
		}
		line = appendRecord(line[:0], record)
		if _, err := w.Write(line); err != nil {
			return err
		}
	}
	return nil
}

// readCell reads an encoded cell, and says whether it is the record's last. It drops the quotes of
// emptyCell, which are not part of the cell.
func (r *recordReader) readCell() (text string, last bool, err error) {
	r.cell = r.cell[:0]
	for quoted := false; ; {
		b, err := r.in.ReadByte()
		if err != nil {
			return "", false, err
		}
		if r.left--; !quoted && (b == ',' || b == '\n') {
			if string(r.cell) == emptyCell {
				r.cell = nil
			}
			return string(r.cell), b == '\n', nil
		}
		if b == '"' {
			quoted = !quoted
		}
		r.cell = append(r.cell, b)
	}
}
