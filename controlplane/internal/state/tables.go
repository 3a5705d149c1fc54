package state

import (
	"encoding/binary"
	"fmt"

	"github.com/hashicorp/go-memdb"

	"shoal.dev/shoal/pkg/ids"
)

// tableList is every table, in the order in which snapshots hold them. Append only.
func tableList() []*memdb.TableSchema {
	return []*memdb.TableSchema{
		clusterTable(), nodesTable(), shardsTable(), customersTable(), keysTable(), groupsTable(), scrapersTable(),
		recipesTable(), jobsTable(), pricesTable(), walletsTable(), entriesTable(), claimsTable(), resultsTable(), booksTable(),
		schemasTable(), previewsTable(),
		dailiesTable(),
		undoneTable(), revokedTable(),
	}
}

// index builds a memdb index over a key made of parts: strings have an end that no string contains, ids and numbers have
// a fixed length, so that different parts have different keys, keys sort by part, and a prefix of the parts is a prefix of
// the key.
func index[R any](name string, unique bool, parts func(*R) []any) *memdb.IndexSchema {
	return &memdb.IndexSchema{Name: name, Unique: unique, Indexer: keyIndexer[R]{parts}}
}

func table(name string, indexes ...*memdb.IndexSchema) *memdb.TableSchema {
	byName := map[string]*memdb.IndexSchema{}
	for _, ix := range indexes {
		byName[ix.Name] = ix
	}
	return &memdb.TableSchema{Name: name, Indexes: byName}
}

type keyIndexer[R any] struct{ parts func(*R) []any }

// FromObject implements memdb.SingleIndexer.
func (k keyIndexer[R]) FromObject(raw any) (bool, []byte, error) {
	return true, key(k.parts(raw.(*R))...), nil
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
			// A zero byte within a string becomes 0 FF, so that its end, 0 1, is unmistakable and sorts before it.
			for i := range len(p) {
				if out = append(out, p[i]); p[i] == 0 {
					out = append(out, 0xFF)
				}
			}
			out = append(out, 0, 1)
		case ids.ID:
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
