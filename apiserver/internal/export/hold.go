package export

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
)

// hold keeps the cells of rows. A block has the length of its bytes before it, then rows: how many
// cells, and of each its place, length and text.
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
		h.put(binary.AppendUvarint(nil, uint64(len(h.last))))
	}
}

// each visits the cells of the rows that were added, until close.
func (h *hold) each(ctx context.Context, visit func([]cell) error) error {
	var cells []cell
	in := bufio.NewReaderSize(h.filed(), 64<<10)
	for {
		length, err := binary.ReadUvarint(in)
		if errors.Is(err, io.EOF) {
			break
		}
		var block strings.Builder
		if err == nil {
			block.Grow(int(length))
			_, err = io.CopyN(&block, in, int64(length))
		}
		if err != nil {
			return fmt.Errorf("read held rows back: %w", err)
		}
		if cells, err = eachHeld(ctx, block.String(), cells, visit); err != nil {
			return err
		}
	}
	_, err := eachHeld(ctx, string(h.last), cells, visit)
	return err
}

// eachHeld visits the rows of a block. cells is room for those of a row.
func eachHeld(ctx context.Context, block string, cells []cell,
	visit func([]cell) error) ([]cell, error) {
	if err := ctx.Err(); err != nil {
		return cells, err
	}
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
