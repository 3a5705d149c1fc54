package api

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"strings"

	"shoal.dev/shoal/apiserver/internal/export"
	"shoal.dev/shoal/apiserver/internal/operation"
)

// Formats of a list that is read to its end in one answer.
const (
	formatCSV   = "csv"
	formatJSONL = "jsonl"
)

// The media types of those formats.
const (
	typeCSV   = "text/csv; charset=utf-8"
	typeJSONL = "application/x-ndjson"
)

// ExportTypes are the media types of an exported list, besides JSON.
func ExportTypes() []string { return []string{typeCSV, typeJSONL} }

// Exported reports whether a format returns the whole list in one answer.
func Exported(format string) bool { return format == formatCSV || format == formatJSONL }

// Export streams all items. next returns them in parts of any length, and nil at the end. Only one
// part is in memory at a time. In csv each member of T is a column; values that are neither text
// nor number are JSON.
func Export[T, Page any](format string,
	next func(ctx context.Context) ([]T, error)) operation.Streamed[Page] {
	if format == formatJSONL {
		return operation.Streamed[Page]{ContentType: typeJSONL,
			Write: func(ctx context.Context, w io.Writer) error {
				return writeLines(ctx, w, next)
			}}
	}
	return operation.Streamed[Page]{ContentType: typeCSV,
		Write: func(ctx context.Context, w io.Writer) error { return writeCSV(ctx, w, next) }}
}

func writeLines[T any](ctx context.Context, w io.Writer,
	next func(ctx context.Context) ([]T, error)) error {
	return eachItem(ctx, next, func(text []byte) error {
		_, err := w.Write(append(text, '\n'))
		return err
	})
}

// eachItem encodes each item as JSON and visits it.
func eachItem[T any](ctx context.Context, next func(ctx context.Context) ([]T, error),
	visit func(text []byte) error) error {
	for {
		items, err := next(ctx)
		if err != nil || items == nil {
			return err
		}
		for _, item := range items {
			text, err := encodeItem(item)
			if err == nil {
				err = visit(bytes.TrimSuffix(text, []byte{'\n'}))
			}
			if err != nil {
				return err
			}
		}
	}
}

func writeCSV[T any](ctx context.Context, w io.Writer,
	next func(ctx context.Context) ([]T, error)) error {
	table, columns := csv.NewWriter(w), members(reflect.TypeFor[T]())
	if err := table.Write(columns); err != nil {
		return fmt.Errorf("head of a table: %w", err)
	}
	record := make([]string, len(columns))
	err := eachItem(ctx, next, func(text []byte) error {
		var values map[string]json.RawMessage
		if err := json.Unmarshal(text, &values); err != nil {
			return fmt.Errorf("line of a table: %w", err)
		}
		for i, name := range columns {
			record[i] = cell(values[name])
		}
		return table.Write(record)
	})
	table.Flush()
	if err == nil {
		err = table.Error()
	}
	return err
}

// members are the JSON names of a struct's fields, in order.
func members(of reflect.Type) (names []string) {
	for i := range of.NumField() {
		name, _, _ := strings.Cut(of.Field(i).Tag.Get("json"), ",")
		if name != "" && name != "-" {
			names = append(names, name)
		}
	}
	return names
}

// cell formats a JSON value as a cell: strings without quotes, null as "", anything else as JSON.
func cell(value json.RawMessage) string {
	var text string
	switch {
	case len(value) == 0 || string(value) == "null":
		return ""
	case value[0] != '"' || json.Unmarshal(value, &text) != nil:
		return string(value)
	}
	return export.GuardText(text)
}
