package sqlite

import (
	"context"
	"database/sql"
	"fmt"

	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/rowstore"
)

const auditColumns = `number, generation, hash, sealed, at, actor, customer, body`

// PutAudit implements rowstore.Archive.
func (s *Store) PutAudit(ctx context.Context, entries []rowstore.AuditRecord) error {
	if len(entries) == 0 {
		return nil
	}
	return s.writer.do(ctx, s.writer.bulk, func() error {
		for i := range entries {
			e := &entries[i]
			if _, err := s.writer.exec(`INSERT OR IGNORE INTO audit (`+auditColumns+`)
				VALUES (?,?,?,?,?,?,?,?)`, int64(e.Number), e.Generation[:], e.Hash[:],
				int64(e.Sealed), e.At, e.Actor, e.Customer, e.Body); err != nil {
				return fmt.Errorf("audit entry %d: %w", e.Number, err)
			}
		}
		return nil
	})
}

// Audit implements rowstore.Archive.
func (s *Store) Audit(ctx context.Context, q rowstore.AuditQuery) ([]rowstore.AuditRecord, error) {
	where := on(q.Path)
	if q.Actor != "" {
		where.and(`actor = ?`, q.Actor)
	}
	if q.Customer != "" {
		where.and(`customer = ?`, q.Customer)
	}
	if q.From != 0 {
		where.and(`at >= ?`, q.From)
	}
	if q.To != 0 {
		where.and(`at < ?`, q.To)
	}
	direction, further := ``, `>`
	if q.Descending {
		direction, further = ` DESC`, `<`
	}
	if q.Beyond > 0 {
		where.and(`number `+further+` ?`, int64(q.Beyond))
	}
	rows, err := s.reads.QueryContext(ctx, `SELECT `+auditColumns+` FROM audit WHERE `+
		where.text.String()+` ORDER BY number`+direction+`, generation, hash`+limit,
		append(where.args, q.Limit)...)
	var entries []rowstore.AuditRecord
	err = each(rows, err, func(rows *sql.Rows) error {
		var e rowstore.AuditRecord
		var generation idColumn
		var hash []byte
		err := rows.Scan(&e.Number, &generation, &hash, &e.Sealed, &e.At, &e.Actor, &e.Customer,
			&e.Body)
		e.Generation = ids.ID(generation)
		copy(e.Hash[:], hash)
		entries = append(entries, e)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("row store: audit trail: %w", err)
	}
	return entries, nil
}

// AuditHead implements rowstore.Archive.
func (s *Store) AuditHead(ctx context.Context, path rowstore.Path) (uint64, error) {
	where := on(path)
	rows, err := s.reads.QueryContext(ctx,
		`SELECT coalesce(max(number), 0) FROM audit WHERE `+where.text.String(), where.args...)
	head := int64(0)
	err = each(rows, err, func(rows *sql.Rows) error { return rows.Scan(&head) })
	if err != nil {
		return 0, fmt.Errorf("row store: head of the audit trail: %w", err)
	}
	return uint64(head), nil
}
