package archive

import (
	"crypto/sha256"
	"fmt"

	"shoal.dev/shoal/controlplane/internal/codec"
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/rowstore"
)

// AuditPath returns the part of the archived audit trail that a view sees. Entries that are still
// in the state are numbered above the trail's Archived in every view.
func AuditPath(view *state.View) rowstore.Path {
	var path rowstore.Path
	if view.Cluster() == nil {
		return nil
	}
	for _, step := range view.Ancestry(1<<63 - 1) {
		path = append(path, rowstore.PathStep{Generation: step.Generation, Upto: step.Upto})
	}
	return path
}

// AuditBatch is a part of the audit trail that leaves the state together: entries of one generation
// without gaps.
type AuditBatch struct {
	Generation ids.ID
	Entries    []rowstore.AuditRecord
	More       bool // more entries follow
}

// NextAudit returns the first entries of a view, at most most.
func NextAudit(view *state.View, most int) (b AuditBatch, err error) {
	view.EachAudit(func(e *state.AuditEntry) bool {
		if len(b.Entries) == 0 {
			b.Generation = e.Generation
		}
		if len(b.Entries) == most || e.Generation != b.Generation {
			b.More = true
			return false
		}
		var record rowstore.AuditRecord
		if record, err = EncodeAudit(e); err == nil {
			b.Entries = append(b.Entries, record)
		}
		return err == nil
	})
	return b, err
}

// EncodeAudit encodes an entry of the audit trail for the archive.
func EncodeAudit(e *state.AuditEntry) (rowstore.AuditRecord, error) {
	body, err := codec.New().Marshal(e)
	if err != nil {
		return rowstore.AuditRecord{}, fmt.Errorf("archive: audit entry %d: %w", e.Number, err)
	}
	return rowstore.AuditRecord{Generation: e.Generation, Number: e.Number,
		Hash: sha256.Sum256(body), Sealed: e.Index, At: e.At, Actor: e.Actor.Name(),
		Customer: e.Customer, Body: body}, nil
}

// DecodeAudit decodes an entry of the archive.
func DecodeAudit(record rowstore.AuditRecord) (*state.AuditEntry, error) {
	e := &state.AuditEntry{}
	if err := codec.New().Unmarshal(record.Body, e); err != nil {
		return nil, fmt.Errorf("archive: audit entry %d: %w", record.Number, err)
	}
	return e, nil
}
