package client

import (
	"context"
	"slices"

	"shoal.dev/shoal/controlplane/internal/archive"
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/rowstore"
)

// The parts of the audit trail.
type (
	AuditEntry  = state.AuditEntry
	AuditChange = state.AuditChange
	AuditMark   = state.AuditMark
)

// AuditRecord is an entry of the audit trail with the hash that the next one names.
type AuditRecord struct {
	*AuditEntry
	Hash [32]byte
}

// Audit reads the audit trail, wherever its entries are. It follows the view's path and so skips
// what a restore abandoned.
func (h *History) Audit(ctx context.Context, v *View, q rowstore.AuditQuery) ([]AuditRecord,
	error) {
	here, err := auditHere(v, q)
	if err != nil {
		return nil, err
	}
	if q.Descending {
		here = here[:min(q.Limit, len(here))]
		if len(here) == q.Limit {
			return here, nil
		}
		past, err := h.auditPast(ctx, v, q, q.Limit-len(here))
		return append(here, past...), err
	}
	past, err := h.auditPast(ctx, v, q, q.Limit)
	all := append(past, here...)
	return all[:min(q.Limit, len(all))], err
}

// auditPast returns the entries in the archive.
func (h *History) auditPast(ctx context.Context, v *View, q rowstore.AuditQuery, most int) (
	[]AuditRecord, error) {
	upto := v.AuditHead().Archived
	if upto == 0 {
		return nil, nil
	}
	q.Path, q.Limit = archive.AuditPath(v), most
	if q.Descending && (q.Beyond == 0 || q.Beyond > upto) {
		q.Beyond = upto + 1
	}
	records, err := h.past.Audit(ctx, q)
	if err != nil {
		return nil, err
	}
	var found []AuditRecord
	for _, record := range records {
		if record.Number > upto {
			break // the state has it as well
		}
		e, err := archive.DecodeAudit(record)
		if err != nil {
			return nil, err
		}
		found = append(found, AuditRecord{e, record.Hash})
	}
	return found, nil
}

// auditHere returns the entries that may not be in the archive yet.
func auditHere(v *View, q rowstore.AuditQuery) (here []AuditRecord, err error) {
	upto := v.AuditHead().Archived
	v.EachAudit(func(e *AuditEntry) bool {
		beyond := q.Beyond == 0 || q.Descending && e.Number < q.Beyond ||
			!q.Descending && e.Number > q.Beyond
		if !beyond || e.Number <= upto || !v.OnPath(e) ||
			q.Actor != "" && q.Actor != e.Actor.Name() ||
			q.Customer != "" && q.Customer != e.Customer ||
			q.From != 0 && e.At < q.From || q.To != 0 && e.At >= q.To {
			return true
		}
		var record rowstore.AuditRecord
		if record, err = archive.EncodeAudit(e); err != nil {
			return false
		}
		here = append(here, AuditRecord{e, record.Hash})
		return q.Descending || len(here) < q.Limit
	})
	if q.Descending {
		slices.Reverse(here)
	}
	return here, err
}
