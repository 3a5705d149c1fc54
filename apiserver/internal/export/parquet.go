package export

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unsafe"

	"github.com/klauspost/compress/s2"
	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress/snappy"

	"shoal.dev/shoal/pkg/reading"
	"shoal.dev/shoal/pkg/rowstore"
)

// groupBytes of values complete a row group, which is in memory until then.
const groupBytes = 16 << 20

// writeParquet writes the rows in row groups of bounded size. A column has the type of all its
// values. If they have several types, or one without a lossless type, the column is JSON: each
// value as it was stored.
func writeParquet(ctx context.Context, w *bufio.Writer, rows Source, o Options) error {
	held := &columnHold{spool: newSpool(o.Disk)}
	defer held.close()
	t, err := tabulate(ctx, rows, o, verbatim, held)
	if err != nil {
		return err
	}
	p := newParquet(w, t)
	written := make(chan error, 1)
	go func() { written <- p.writeChunks() }()
	if t.kept {
		err = held.each(ctx, p.add)
	} else {
		err = p.readAgain(ctx, t)
	}
	close(p.full)
	if failed := <-written; failed != nil {
		return failed // why no more rows were accepted
	}
	if err != nil {
		return err
	}
	if err := p.out.Close(); err != nil {
		return fmt.Errorf("end of a parquet file: %w", err)
	}
	return nil
}

// parquetFile is a parquet file being written. One goroutine writes a column's values while the
// next column's are prepared.
type parquetFile struct {
	out        *parquet.GenericWriter[any]
	order      []int                              // that of the table
	encode     []func(value string) parquet.Value // by order of discovery
	group      int                                // bytes in the current row group
	full, free chan *parquetChunk                 // each has room for all chunks
}

// parquetChunk is the values of one column in some rows.
type parquetChunk struct {
	place  int
	values []parquet.Value
	last   bool // of a row group
}

// parquetChunks is how many chunks there are.
const parquetChunks = 4

func newParquet(w io.Writer, t *table) *parquetFile {
	p := &parquetFile{order: t.order, full: make(chan *parquetChunk, parquetChunks),
		free: make(chan *parquetChunk, parquetChunks)}
	for range parquetChunks {
		p.free <- &parquetChunk{}
	}
	group := orderedGroup{parquet.Group{}, make([]parquet.Field, len(t.columns))}
	place := map[string]int{}
	for discovered, at := range t.order {
		c := t.reader.columns[discovered]
		node, encode := c.values.parquetType()
		group.Group[c.name], place[c.name] = parquet.Optional(node), at
		p.encode = append(p.encode, encode)
	}
	for _, field := range group.Group.Fields() {
		group.fields[place[field.Name()]] = field
	}
	// A page's header would repeat its least and greatest value four times, uncompressed. The
	// footer has them for readers that skip.
	p.out = parquet.NewGenericWriter[any](w, parquet.NewSchema("row", group),
		parquet.Compression(&quickSnappy{}), parquet.PageBufferSize(256<<10),
		parquet.DataPageStatistics(false))
	return p
}

// orderedGroup is a group whose fields have a given order.
type orderedGroup struct {
	parquet.Group
	fields []parquet.Field
}

// Fields implements parquet.Node.
func (g orderedGroup) Fields() []parquet.Field { return g.fields }

// parquetType is the type that keeps all values of a column, and what converts a value.
func (s shapes) parquetType() (parquet.Node, func(value string) parquet.Value) {
	switch {
	case s&^isText == 0:
		return parquet.String(), func(value string) parquet.Value {
			return textValue(value[1 : len(value)-1])
		}
	case s&^(isText|isEscaped) == 0:
		return parquet.String(), func(value string) parquet.Value {
			text, _ := rowstore.TextOf(value)
			return textValue(text)
		}
	case s == isBool:
		return parquet.Leaf(parquet.BooleanType), func(value string) parquet.Value {
			return parquet.BooleanValue(value == "true")
		}
	case s&^(isInteger|isLarge) == 0:
		return parquet.Int(64), func(value string) parquet.Value {
			number, _ := strconv.ParseInt(value, 10, 64) // cannot fail: shapeOf has checked it
			return parquet.Int64Value(number)
		}
	case s&^(isInteger|isDecimal) == 0:
		return parquet.Leaf(parquet.DoubleType), func(value string) parquet.Value {
			number, _ := keepFloat(value) // shapeOf has checked it
			return parquet.DoubleValue(number)
		}
	}
	return parquet.JSON(), func(value string) parquet.Value {
		return textValue(strings.ToValidUTF8(value, "\ufffd"))
	}
}

// textValue shares a text's memory, which nobody writes to.
func textValue(text string) parquet.Value {
	return parquet.ByteArrayValue(unsafe.Slice(unsafe.StringData(text), len(text)))
}

// quickSnappy is Snappy at its fastest. The library's own codec searches twice for matches.
type quickSnappy struct{ snappy.Codec }

// Encode implements compress.Codec.
func (*quickSnappy) Encode(dst, src []byte) ([]byte, error) {
	return s2.EncodeSnappy(dst, src), nil
}

// readAgain adds rows that could not be held.
func (p *parquetFile) readAgain(ctx context.Context, t *table) error {
	block := &columnBlock{}
	if err := t.readAll(ctx, func(cells []cell) error {
		if block.add(cells); !block.full() {
			return nil
		}
		defer block.clear()
		return block.visit(p.add)
	}); err != nil {
		return err
	}
	return block.visit(p.add)
}

// errNotWritten ends the reading when the writer has failed.
var errNotWritten = errors.New("export: a parquet file is not written any more")

// add adds a block of rows, and ends the row group when it is full.
func (p *parquetFile) add(rows int, columns []string) error {
	for _, cells := range columns {
		p.group += len(cells)
	}
	ends := p.group >= groupBytes
	if ends {
		p.group = 0
	}
	for discovered, place := range p.order {
		chunk, open := <-p.free
		if !open {
			return errNotWritten
		}
		var cells string
		if discovered < len(columns) {
			cells = columns[discovered]
		}
		chunk.place, chunk.last = place, ends && discovered+1 == len(p.order)
		chunk.fill(rows, cells, p.encode[discovered])
		p.full <- chunk
	}
	return nil
}

// fill sets the values of this many rows.
func (c *parquetChunk) fill(rows int, cells string, encode func(value string) parquet.Value) {
	none := parquet.NullValue().Level(0, 0, c.place)
	c.values = slices.Grow(c.values[:0], rows)[:rows]
	for i := range c.values {
		size := 0
		if cells != "" {
			size = cutNumber(&cells)
		}
		if value := cells[:size]; size == 0 || value == "null" {
			c.values[i] = none
		} else {
			c.values[i] = encode(value).Level(0, 1, c.place)
		}
		cells = cells[size:]
	}
}

// writeChunks writes the chunks that add fills, until there are no more.
func (p *parquetFile) writeChunks() (err error) {
	defer close(p.free)
	caught := reading.Catch(func() {
		for chunk := range p.full {
			if err = p.write(chunk); err != nil {
				return
			}
			p.free <- chunk
		}
	})
	if caught != nil {
		return fmt.Errorf("export: panic: %v\n%s", caught.Value, caught.Stack)
	}
	return err
}

func (p *parquetFile) write(chunk *parquetChunk) error {
	if _, err := p.out.ColumnWriters()[chunk.place].WriteRowValues(chunk.values); err != nil {
		return fmt.Errorf("rows of a parquet file: %w", err)
	}
	if !chunk.last {
		return nil
	}
	if err := p.out.Flush(); err != nil {
		return fmt.Errorf("row group of a parquet file: %w", err)
	}
	return nil
}
