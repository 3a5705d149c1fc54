package export

import (
	"context"
	"encoding/binary"
)

// hold keeps the cells of rows. A block is a sequence of rows: the number of cells, then the place,
// length and text of each.
type hold struct{ spool }

func (h *hold) add(_ []column, cells []cell) {
	if h.gone {
		return
	}
	h.last = binary.AppendUvarint(h.last, uint64(len(cells)))
	for _, c := range cells {
		h.last = binary.AppendUvarint(h.last, uint64(c.place))
		h.last = append(binary.AppendUvarint(h.last, uint64(len(c.value))), c.value...)
	}
	if h.full() {
		h.putBlock()
	}
}

// each visits the cells of the added rows. The cells are valid until close.
func (h *hold) each(ctx context.Context, visit func([]cell) error) error {
	var cells []cell
	block := func(block string) (err error) {
		cells, err = eachHeld(block, cells, visit)
		return err
	}
	if err := h.eachBlock(ctx, block); err != nil {
		return err
	}
	return block(string(h.last))
}

// eachHeld visits the rows of a block. cells is scratch space for the cells of a row.
func eachHeld(block string, cells []cell, visit func([]cell) error) ([]cell, error) {
	for block != "" {
		cells = cells[:0]
		for range cutNumber(&block) {
			place, length := cutNumber(&block), cutNumber(&block)
			cells = append(cells, cell{place, block[:length]})
			block = block[length:]
		}
		if err := visit(cells); err != nil {
			return cells, err
		}
	}
	return cells, nil
}
