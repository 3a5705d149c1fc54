package export

import (
	"context"
	"encoding/binary"
)

// columnHold keeps rows by column, in blocks. A block is its number of rows, then for each column
// the length of its bytes and the bytes.
type columnHold struct {
	spool
	block columnBlock // rows that are not in the spool yet
}

func (h *columnHold) add(_ []column, cells []cell) {
	if h.gone {
		return
	}
	if h.block.add(cells); h.block.full() {
		h.last = h.block.append(h.last)
		h.putBlock()
		h.block.clear()
	}
}

// each visits the added rows block by block: their number, and the cells of each column.
func (h *columnHold) each(ctx context.Context, visit func(rows int, columns []string) error) error {
	var columns []string
	err := h.eachBlock(ctx, func(block string) error {
		rows := cutNumber(&block)
		for columns = columns[:0]; block != ""; {
			size := cutNumber(&block)
			columns, block = append(columns, block[:size]), block[size:]
		}
		return visit(rows, columns)
	})
	if err != nil {
		return err
	}
	return h.block.visit(visit)
}

// columnBlock holds some rows by column.
type columnBlock struct {
	rows, bytes int
	columns     []columnCells // in the order of discovery
}

// columnCells are the cells of a column: for each row the length of the text and the text, length 0
// where the row has none. Cells of the last rows may be missing.
type columnCells struct {
	rows int
	text []byte
	last int // where the last cell begins
}

func (b *columnBlock) add(cells []cell) {
	for _, c := range cells {
		for c.place >= len(b.columns) {
			b.columns = append(b.columns, columnCells{})
		}
		column := &b.columns[c.place]
		if column.rows > b.rows { // the row has the column twice
			column.text = column.text[:column.last]
		} else {
			for ; column.rows < b.rows; column.rows++ {
				column.text = append(column.text, 0)
			}
			column.rows, column.last = b.rows+1, len(column.text)
		}
		column.text = binary.AppendUvarint(column.text, uint64(len(c.value)))
		column.text = append(column.text, c.value...)
		b.bytes += len(c.value)
	}
	b.rows++
}

// full says whether the block is large enough to be passed on.
func (b *columnBlock) full() bool {
	return b.bytes >= spooledInMemory || b.rows >= maxBlockRows
}

// maxBlockRows bounds the memory of rows without text.
const maxBlockRows = 10_000

func (b *columnBlock) append(out []byte) []byte {
	out = binary.AppendUvarint(out, uint64(b.rows))
	for _, column := range b.columns {
		out = binary.AppendUvarint(out, uint64(len(column.text)))
		out = append(out, column.text...)
	}
	return out
}

func (b *columnBlock) visit(visit func(rows int, columns []string) error) error {
	columns := make([]string, len(b.columns))
	for i, column := range b.columns {
		columns[i] = string(column.text)
	}
	return visit(b.rows, columns)
}

// clear empties the block for new rows.
func (b *columnBlock) clear() {
	b.rows, b.bytes = 0, 0
	for i := range b.columns {
		b.columns[i] = columnCells{text: b.columns[i].text[:0]}
	}
}

// cutNumber cuts a number off the front of a text, as encoding/binary writes it.
func cutNumber(text *string) int {
	n := uint64(0)
	for i, shift := 0, 0; ; i, shift = i+1, shift+7 {
		b := (*text)[i]
		if n |= uint64(b&0x7f) << shift; b < 0x80 {
			*text = (*text)[i+1:]
			return int(n)
		}
	}
}
