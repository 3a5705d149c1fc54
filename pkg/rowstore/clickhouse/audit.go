package clickhouse

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"shoal.dev/shoal/pkg/rowstore"
)

const auditColumns = `number, generation, hash, sealed, at, actor, customer, body`

// auditSchema is outside the schema versions, like the archive's. A repeated write adds an equal
// record, and reads take the first.
var auditSchema = `CREATE TABLE IF NOT EXISTS DB.audit (
	number     UInt64 CODEC(Delta, ZSTD(1)),
	generation FixedString(12),
	hash       FixedString(32),
	sealed     UInt64 CODEC(Delta, ZSTD(1)),
	at         Int64 CODEC(Delta, ZSTD(1)), -- Unix milliseconds
	actor      String,
	customer   String,
	body       String CODEC(ZSTD(1)),
	INDEX by_actor actor TYPE bloom_filter(0.001) GRANULARITY 1,
	INDEX by_customer customer TYPE bloom_filter(0.001) GRANULARITY 1,
	INDEX by_time at TYPE minmax GRANULARITY 1
) ENGINE = ` + engine + `ReplacingMergeTree ORDER BY (number, generation, hash)` + durable +
	`, index_granularity = 512`

var auditTypes = typed(auditColumns, "UInt64", "FixedString(12)", "FixedString(32)", "UInt64",
	"Int64", "String", "String", "String")

// PutAudit implements rowstore.Archive.
func (s *Store) PutAudit(ctx context.Context, entries []rowstore.AuditRecord) error {
	put := func() error {
		return s.fill(ctx, "audit", auditColumns, auditTypes, len(entries), func(i int) []any {
			e := &entries[i]
			return []any{e.Number, e.Generation[:], e.Hash[:], e.Sealed, e.At, e.Actor, e.Customer,
				e.Body}
		})
	}
	err := put()
	if refusedWith(err, tableUnknown) {
		if err := s.exec(ctx, callTimeout,
			strings.ReplaceAll(auditSchema, "DB.", s.table(""))); err != nil {
			return fmt.Errorf("row store: make the audit trail: %w", err)
		}
		err = put()
	}
	if err != nil {
		return fmt.Errorf("row store: audit trail: %w", err)
	}
	return nil
}

// Audit implements rowstore.Archive.
func (s *Store) Audit(ctx context.Context, q rowstore.AuditQuery) ([]rowstore.AuditRecord, error) {
	where := onPath(q.Path)
	if q.Actor != "" {
		where += ` AND actor = ` + text(q.Actor)
	}
	if q.Customer != "" {
		where += ` AND customer = ` + text(q.Customer)
	}
	if q.From != 0 {
		where += fmt.Sprintf(` AND at >= %d`, q.From)
	}
	if q.To != 0 {
		where += fmt.Sprintf(` AND at < %d`, q.To)
	}
	direction, further := ``, `>`
	if q.Descending {
		direction, further = ` DESC`, `<`
	}
	if q.Beyond > 0 {
		where += fmt.Sprintf(` AND number %s %d`, further, q.Beyond)
	}
	entries, err := past(ctx, s, `SELECT `+auditColumns+` FROM `+s.table("audit")+` WHERE `+where+
		` ORDER BY number`+direction+`, generation, hash LIMIT 1 BY number, generation, hash`+
		fmt.Sprintf(` LIMIT %d`, q.Limit),
		func(rows driver.Rows) (e rowstore.AuditRecord, err error) {
			var generation, hash, body string
			err = rows.Scan(&e.Number, &generation, &hash, &e.Sealed, &e.At, &e.Actor, &e.Customer,
				&body)
			e.Body = []byte(body)
			copy(e.Generation[:], generation)
			copy(e.Hash[:], hash)
			return e, err
		})
	if err != nil {
		return nil, fmt.Errorf("row store: audit trail: %w", err)
	}
	return entries, nil
}

// AuditHead implements rowstore.Archive.
func (s *Store) AuditHead(ctx context.Context, path rowstore.Path) (uint64, error) {
	found, err := past(ctx, s, `SELECT max(number) FROM `+s.table("audit")+` WHERE `+onPath(path),
		func(rows driver.Rows) (one uint64, err error) { return one, rows.Scan(&one) })
	if err != nil {
		return 0, fmt.Errorf("row store: head of the audit trail: %w", err)
	}
	return slices.Max(append(found, 0)), nil
}
