package export

import (
	"context"
	"encoding/binary"
)

// columnHold keeps rows by their columns, in blocks. A block is the number of its rows, then of
// each column the length of its bytes and these.
type columnHold struct {
	spool
	block columnBlock // behind what is in the spool
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

// each visits the rows that were added, a block at a time: how many, and the cells of each column.
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

// columnBlock is a number of rows by their columns.
type columnBlock struct {
	rows, bytes int
	columns     []columnCells // by their places of discovery
}

// columnCells are those of a column: of each row the length of its text and this, nothing where the
// row has none. The last rows may be missing.
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
		if column.rows > b.rows { // it is there twice
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

// full says whether it is time to hand the block on.
func (b *columnBlock) full() bool {
	return b.bytes >= spooledInMemory || b.rows >= maxBlockRows
}

// maxBlockRows bounds what rows without text take.
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

// clear makes room for other rows.
func (b *columnBlock) clear() {
	b.rows, b.bytes = 0, 0
	for i := range b.columns {
		b.columns[i] = columnCells{text: b.columns[i].text[:0]}
	}
}

// cutNumber cuts a number from what begins with it, as encoding/binary writes it.
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
