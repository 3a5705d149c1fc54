package export

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress/snappy"

	"shoal.dev/shoal/pkg/rowstore"
)

const (
	// groupBytes of values end a row group, which is in memory until then.
	groupBytes = 16 << 20
	// groupRows are how many rows are handed on at a time.
	groupRows = 100
)

// writeParquet writes the rows in row groups that are bounded in bytes. Each column has the type
// that all of its values have. Where they have several, or one that no type keeps, it is JSON: each
// value as it was stored.
func writeParquet(ctx context.Context, w *bufio.Writer, rows Source, o Options) error {
	held := &hold{newSpool(o.Disk)}
	defer held.close()
	t, err := tabulate(ctx, rows, o, verbatim, held)
	if err != nil {
		return err
	}
	p := newParquet(w, t.columns)
	if err := t.each(ctx, held, p.add); err != nil {
		return err
	}
	if err := p.flush(); err != nil {
		return err
	}
	if err := p.out.Close(); err != nil {
		return fmt.Errorf("end of a parquet file: %w", err)
	}
	return nil
}

// parquetFile is one that is being written.
type parquetFile struct {
	out    *parquet.GenericWriter[any]
	encode []func(value string) parquet.Value // by column
	values []parquet.Value                    // of the rows that are gathered
	rows   []parquet.Row
	bytes  int // of the row group
}

func newParquet(w io.Writer, columns []column) *parquetFile {
	p := &parquetFile{}
	group := orderedGroup{parquet.Group{}, make([]parquet.Field, len(columns))}
	place := map[string]int{}
	for i, c := range columns {
		node, encode := c.values.parquetType()
		group.Group[c.name], place[c.name] = parquet.Optional(node), i
		p.encode = append(p.encode, encode)
	}
	for _, field := range group.Group.Fields() {
		group.fields[place[field.Name()]] = field
	}
	p.out = parquet.NewGenericWriter[any](w, parquet.NewSchema("row", group),
		parquet.Compression(&snappy.Codec{}), parquet.PageBufferSize(256<<10))
	return p
}

// orderedGroup is a group whose fields have an order of their own.
type orderedGroup struct {
	parquet.Group
	fields []parquet.Field
}

// Fields implements parquet.Node.
func (g orderedGroup) Fields() []parquet.Field { return g.fields }

// parquetType is the type that keeps all values of a column, and what makes one of a value.
func (s shapes) parquetType() (parquet.Node, func(value string) parquet.Value) {
	switch {
	case s&^isText == 0:
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
			number, _ := strconv.ParseInt(value, 10, 64) // it was looked at
			return parquet.Int64Value(number)
		}
	case s&^(isInteger|isDecimal) == 0:
		return parquet.Leaf(parquet.DoubleType), func(value string) parquet.Value {
			number, _ := keepFloat(value) // it was looked at
			return parquet.DoubleValue(number)
		}
	}
	return parquet.JSON(), func(value string) parquet.Value {
		return textValue(strings.ToValidUTF8(value, "\ufffd"))
	}
}

func textValue(text string) parquet.Value { return parquet.ValueOf(text) }

func (p *parquetFile) add(cells []cell) error {
	begin := len(p.values)
	for i := range p.encode {
		p.values = append(p.values, parquet.NullValue().Level(0, 0, i))
	}
	values := p.values[begin:]
	for _, c := range cells {
		p.bytes += len(c.value)
		if c.value == "null" {
			values[c.place] = parquet.NullValue().Level(0, 0, c.place)
			continue
		}
		values[c.place] = p.encode[c.place](c.value).Level(0, 1, c.place)
	}
	p.rows = append(p.rows, values)
	if len(p.rows) == groupRows || p.bytes >= groupBytes {
		return p.flush()
	}
	return nil
}

// flush hands on the rows that are gathered, and ends the row group when it is full.
func (p *parquetFile) flush() error {
	if _, err := p.out.WriteRows(p.rows); err != nil {
		return fmt.Errorf("rows of a parquet file: %w", err)
	}
	clear(p.values) // so that nothing holds their text
	p.values, p.rows = p.values[:0], p.rows[:0]
	if p.bytes < groupBytes {
		return nil
	}
	p.bytes = 0
	if err := p.out.Flush(); err != nil {
		return fmt.Errorf("row group of a parquet file: %w", err)
	}
	return nil
}
