package clickhouse

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"strings"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"shoal.dev/shoal/pkg/rowstore"
)

// Order implements rowstore.Reads. The server selects the first rows, without their documents.
func (s *Store) Order(ctx context.Context, q rowstore.OrderQuery) ([]rowstore.Standing, error) {
	if q.Limit <= 0 || len(q.Scopes) == 0 {
		return nil, nil
	}
	from, err := s.source(ctx)
	if err != nil {
		return nil, err
	}
	direction, behind := "", ">"
	if q.Sort.Descending {
		direction, behind = " DESC", "<"
	}
	after := "1"
	if a := q.After; a != nil {
		after = fmt.Sprintf(`(class > %d OR class = %[1]d AND (number %[2]s %[3]s OR number = %[3]s
			AND (text %[2]s %[4]s OR text = %[4]s AND %[5]s)))`, a.Class, behind, exactly(a.Number),
			text(a.Text), from.places(a.Place, math.MaxInt64))
	}
	kind := column(q.Sort.Field, "kind")
	found, err := read(ctx, s, fmt.Sprintf(`SELECT class, number, text, _block_number, pos FROM (
		SELECT transform(%s, [%d, %d, %d, %d, %d, %d], [0, 0, 1, 2, 2, 3], 4) AS class,
			if(%[1]s >= %[2]d, %[8]s, %[1]s = %[6]d) AS number,
			if(%[1]s = %[4]d, substring(%[9]s, 1, %[10]d), '') AS text, _block_number, pos
		FROM %[11]s WHERE %[12]s AND kind = 1 AND %[13]s AND %[14]s)
		WHERE %[15]s ORDER BY class, number%[16]s, text%[16]s, _block_number, pos LIMIT %[17]d
		SETTINGS %[18]s`, kind, kindNumber, kindNumericText, kindText, kindFalse, kindTrue, kindOther,
		column(q.Sort.Field, "num"), column(q.Sort.Field, "text"), rowstore.KeyBytes, from.from,
		printScopes(q.Scopes), from.places(0, q.Upto), printFilter(q.Filter), after, direction,
		q.Limit, withoutTopK),
		func(rows driver.Rows) (row rowstore.Standing, err error) {
			var class uint8
			var block uint64
			var pos uint32
			err = rows.Scan(&class, &row.Number, &row.Text, &block, &pos)
			row.Class = rowstore.Class(class)
			row.Place = int64((block+from.base)<<posBits | uint64(pos))
			return row, err
		})
	if err != nil {
		return nil, fmt.Errorf("row store: order: %w", err)
	}
	return found, nil
}

// At implements rowstore.Reads. Blocks and positions in them each narrow the granules to read.
func (s *Store) At(ctx context.Context, scopes []rowstore.Scope, places []int64,
	bytes int) ([]json.RawMessage, int, error) {
	if len(places) == 0 || len(scopes) == 0 {
		return nil, len(places), nil
	}
	from, err := s.source(ctx)
	if err != nil {
		return nil, 0, err
	}
	var blocks, poses, whole []string
	for _, place := range places {
		place -= int64(from.base) << posBits
		blocks = append(blocks, fmt.Sprint(place>>posBits))
		poses = append(poses, fmt.Sprint(place&posMask))
		whole = append(whole, fmt.Sprint(place))
	}
	list := func(values []string) string { return strings.Join(values, ",") }
	page := fmt.Sprintf(`SELECT doc, toUInt32(indexOf([%[1]s], place)) AS n FROM (
		SELECT doc, toInt64(bitOr(bitShiftLeft(toUInt64(_block_number), %[2]d), toUInt64(pos))) AS place
		FROM %[3]s WHERE %[4]s AND identity(kind) = 1 AND _block_number IN (%[5]s) AND pos IN (%[6]s))
		WHERE n > 0`, list(whole), posBits, from.from, printScopes(scopes), list(blocks), list(poses))
	if bytes > 0 && len(places) > fewRows {
		page = fmt.Sprintf(`SELECT doc, n FROM (SELECT doc, n, sum(length(doc)) OVER (ORDER BY n ROWS UNBOUNDED PRECEDING) AS size
			FROM (%s)) WHERE size - length(doc) < %d`, page, bytes)
	}
	found, err := read(ctx, s, page+` ORDER BY n`,
		func(rows driver.Rows) (one rowstore.Numbered, err error) {
			var doc string
			var n uint32
			err = rows.Scan(&doc, &n)
			return rowstore.Numbered{Doc: json.RawMessage(doc), Number: int(n) - 1}, err
		})
	if err != nil {
		return nil, 0, fmt.Errorf("row store: rows at places: %w", err)
	}
	docs, used := rowstore.Cut(found, len(places), bytes)
	return docs, used, nil
}

// printScopes is printScope for several scopes.
func printScopes(scopes []rowstore.Scope) string {
	if len(scopes) == 1 {
		return printScope(scopes[0])
	}
	texts := make([]string, len(scopes))
	for i, scope := range scopes {
		texts[i] = "(" + printScope(scope) + ")"
	}
	return "(" + strings.Join(texts, " OR ") + ")"
}

// exactly writes a number without losing a bit.
func exactly(value float64) string {
	return fmt.Sprintf("reinterpretAsFloat64(toUInt64(%d))", math.Float64bits(value+0))
}
