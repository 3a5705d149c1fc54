package state

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"shoal.dev/shoal/pkg/ids"
)

// tables lists all tables in the order of their sections in a snapshot. Append only.
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
		&archiveTable.kind, &profilesTable.kind, &launchesTable.kind,
		&noticesTable.kind, &inboxesTable.kind, &topUpsTable.kind, &reversalsTable.kind,
		&removalsTable.kind, &mailsTable.kind, &deletedRunsTable.kind,
		&deletedGroupsTable.kind,
		&webhooksTable.kind, &deliveriesTable.kind,
		&auditTable.kind, &auditHeadTable.kind, &auditFailuresTable.kind,
		&accountsTable.kind, &sessionsTable.kind,
		&categoriesTable.kind,
		&subscriptionsTable.kind, &invoicesTable.kind,
		&sharesTable.kind,
		&schedulesTable.kind,
		&ticketsTable.kind,
		&settingsTable.kind,
		&grantsTable.kind, &grantCodesTable.kind,
		&lettersTable.kind,
		&exportsTable.kind,
		&harvestsTable.kind,
		&importsTable.kind,
		&passkeysTable.kind,
		&sitesTable.kind,
		&cataloguesTable.kind,
		&heldRunsTable.kind,
		&feedbackTable.kind,
	}
}

// table is a table of records R. Its definition beside the record type is complete: reads, writes,
// snapshots, restores and digests use it.
type table[R any] struct{ kind }

// kind is a table without its record type.
type kind struct {
	name    string
	since   uint32 // the cluster's version that has the table
	indexes []indexed
	id      int                        // which of the indexes has the key of the records
	watched bool                       // its records can be watched
	empty   func() any                 // makes an empty record to decode into
	form    func(record, into any) any // a record as encoded and summed; nil: as it is
	// touch is what a customer's followers are told about a record; nil: nothing
	touch func(any) touching

	tell       func(any) telling // what the audit trail tells about a record; nil: only its key
	alwaysTold bool              // whoever changes it, not only admins
	neverTold  bool
	leaves     bool // removals are not told
}

// indexed is one index of a table.
type indexed struct {
	name   string
	unique bool // otherwise keys end with the record's id
	parts  func(record any) []any
}

// define makes a table, which then must not change. One of its indexes is "id", the key of its
// records.
func define[R any](since uint32, name string, indexes ...keyed[R]) *table[R] {
	tb := &table[R]{kind{name: name, since: since, empty: func() any { return new(R) }}}
	for _, ix := range indexes {
		tb.indexes = append(tb.indexes, indexed(ix))
	}
	tb.id = slices.IndexFunc(tb.indexes, func(ix indexed) bool { return ix.name == "id" })
	return tb
}

// watchable makes the table's records watchable.
func (tb *table[R]) watchable() *table[R] {
	tb.watched = true
	return tb
}

// written sets how records are encoded and summed: without what other records determine. The form
// may build its result in into, which the next record overwrites.
func (tb *table[R]) written(form func(r, into *R) any) *table[R] {
	tb.form = func(record, into any) any { return form(record.(*R), into.(*R)) }
	return tb
}

// encoded returns a record as it is encoded and summed. It may build the result in into.
func (k *kind) encoded(record, into any) any {
	if k.form == nil {
		return record
	}
	return k.form(record, into)
}

// keyed is an index over records R.
type keyed[R any] indexed

// index defines an index by a key made of parts. A string ends with a mark that no string contains;
// ids and numbers have a fixed length. So different parts have different keys, keys sort by part,
// and a prefix of the parts is a prefix of the key. A record with nil parts is not in the index.
func index[R any](name string, unique bool, parts func(*R) []any) keyed[R] {
	return keyed[R]{name, unique, func(record any) []any { return parts(record.(*R)) }}
}

// key returns a record's key in an index; "": the record is not in it.
func (k *kind) key(index int, record any) string {
	parts := k.indexes[index].parts(record)
	if parts == nil {
		return ""
	}
	if !k.indexes[index].unique {
		return string(append(key(parts...), k.key(k.id, record)...))
	}
	return string(key(parts...))
}

// keys returns a record's keys in all indexes.
func (k *kind) keys(record any) []string {
	keys := make([]string, len(k.indexes))
	for i := range keys {
		keys[i] = k.key(i, record)
	}
	return keys
}

// find returns the index with a name, and whether its arguments are a whole key. They are a prefix
// if the name ends in "_prefix", or the index is not unique.
func (k *kind) find(name string) (index int, whole bool) {
	name, part := strings.CutSuffix(name, "_prefix")
	for i, ix := range k.indexes {
		if ix.name == name {
			return i, !part && ix.unique
		}
	}
	panic(fmt.Sprintf("state: %s has no index %s", k.name, name)) // a programmer's slip
}

// key encodes parts as a key. A single []byte is a key already.
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
