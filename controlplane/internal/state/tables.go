package state

import (
	"encoding/binary"
	"fmt"

	"github.com/hashicorp/go-memdb"

	"shoal.dev/shoal/pkg/ids"
)

// tables is every table, in the order in which snapshots hold them. Append only.
func tables() []*kind {
	return []*kind{
		&clusterTable.kind, &nodesTable.kind, &shardsTable.kind, &customersTable.kind,
		&keysTable.kind,
		&groupsTable.kind, &scrapersTable.kind, &recipesTable.kind, &jobsTable.kind,
		&pricesTable.kind,
		&walletsTable.kind, &entriesTable.kind, &claimsTable.kind, &resultsTable.kind,
		&booksTable.kind,
		&schemasTable.kind, &previewsTable.kind, &dailiesTable.kind, &undoneTable.kind,
		&revokedTable.kind, &workTable.kind, &workersTable.kind, &contentsTable.kind,
		&archiveTable.kind,
	}
}

// table is one table of records R. Its value stands beside the record and is all there is to say of
// it: reads and writes, snapshots, restores and digests go by it.
type table[R any] struct{ kind }

// kind is a table, whatever its records are.
type kind struct {
	name   string
	since  uint32 // the cluster's version that has the table
	schema *memdb.TableSchema
	id     memdb.SingleIndexer // of the key of its records
	empty  func() any          // makes a record to be decoded into
	form   func(any) any       // a record as it is written and summed; nil: as it is
}

// define makes a table, which is not changed any more. One of its indexes is "id", the key of its
// records.
func define[R any](since uint32, name string, indexes ...keyed[R]) *table[R] {
	schema := &memdb.TableSchema{Name: name, Indexes: map[string]*memdb.IndexSchema{}}
	for _, ix := range indexes {
		schema.Indexes[ix.schema.Name] = ix.schema
	}
	return &table[R]{kind{name: name, since: since, schema: schema,
		id:    schema.Indexes["id"].Indexer.(memdb.SingleIndexer),
		empty: func() any { return new(R) }}}
}

// written says how records are written and summed: without what other records say of them.
func (tb *table[R]) written(form func(*R) any) *table[R] {
	tb.form = func(record any) any { return form(record.(*R)) }
	return tb
}

// encoded is a record as it is written and summed.
func (k *kind) encoded(record any) any {
	if k.form == nil {
		return record
	}
	return k.form(record)
}

// keyed is an index over records R.
type keyed[R any] struct{ schema *memdb.IndexSchema }

// index builds an index over a key made of parts. Strings have an end that no string contains, ids
// and numbers have a fixed length. So different parts have different keys, keys sort by part, and a
// prefix of the parts is a prefix of the key. A record without parts is not in the index.
func index[R any](name string, unique bool, parts func(*R) []any) keyed[R] {
	return keyed[R]{&memdb.IndexSchema{Name: name, Unique: unique, AllowMissing: name != "id",
		Indexer: keyIndexer[R]{parts}}}
}

type keyIndexer[R any] struct{ parts func(*R) []any }

// FromObject implements memdb.SingleIndexer.
func (k keyIndexer[R]) FromObject(raw any) (bool, []byte, error) {
	parts := k.parts(raw.(*R))
	if parts == nil {
		return false, nil, nil
	}
	return true, key(parts...), nil
}

// FromArgs implements memdb.Indexer.
func (k keyIndexer[R]) FromArgs(args ...any) ([]byte, error) { return key(args...), nil }

// PrefixFromArgs implements memdb.PrefixIndexer.
func (k keyIndexer[R]) PrefixFromArgs(args ...any) ([]byte, error) { return key(args...), nil }

// key is of parts, or what is a key already.
func key(parts ...any) []byte {
	if len(parts) == 1 {
		if made, is := parts[0].([]byte); is {
			return made
		}
	}
	out := make([]byte, 0, 32)
	for _, part := range parts {
		switch p := part.(type) {
		case string:
			// A zero byte within a string becomes 0 FF, so that its end, 0 1, is unmistakable and
			// sorts before it.
			for i := range len(p) {
				if out = append(out, p[i]); p[i] == 0 {
					out = append(out, 0xFF)
				}
			}
			out = append(out, 0, 1)
		case ids.ID:
			out = append(out, p[:]...)
		case Hash:
			out = append(out, p[:]...)
		case CallName:
			out = append(out, p[:]...)
		case uint64:
			out = binary.BigEndian.AppendUint64(out, p)
		case int64:
			out = binary.BigEndian.AppendUint64(out, uint64(p)^1<<63)
		case uint32:
			out = binary.BigEndian.AppendUint32(out, p)
		case uint16:
			out = binary.BigEndian.AppendUint16(out, p)
		case bool:
			if p {
				out = append(out, 1)
			} else {
				out = append(out, 0)
			}
		default:
			panic(fmt.Sprintf("state: a key part of type %T", part)) // a programmer's slip
		}
	}
	return out
}
