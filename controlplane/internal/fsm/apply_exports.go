package fsm

import (
	"strings"

	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/work"
)

func askExport(tx *state.Tx, p command.AskExportPayload) (state.Export, error) {
	if known := tx.Export(p.ID); known != nil {
		return *known, nil
	}
	var bytes int64
	held := tx.Exports(p.Customer)
	for _, e := range held {
		bytes += e.Bytes
	}
	switch customer := tx.Customer(p.Customer); {
	case customer == nil || customer.Blocked():
		return state.Export{}, fault.New(fault.CustomerBlocked,
			"an admin has blocked this customer: it exports no rows")
	case p.ID.IsZero() || len(p.Request) > command.MaxExportRequest ||
		len(p.Groups) > command.MaxExportGroups || p.Kept <= 0:
		return state.Export{}, fault.New(fault.InvalidRequest,
			"a kept export names rows of at most %d groups, by at most %d bytes",
			command.MaxExportGroups, command.MaxExportRequest)
	case len(held) >= command.MaxExports || bytes >= command.MaxExportBytes:
		return state.Export{}, fault.New(fault.LimitReached, "a customer has at most %d kept "+
			"exports, and %d GiB of their files: delete some", command.MaxExports,
			command.MaxExportBytes>>30)
	case tx.IsShort():
		return state.Export{}, errShort()
	}
	e := state.Export{ID: p.ID, Customer: p.Customer, Key: p.Key, Request: p.Request,
		Owner: p.Owner, Groups: p.Groups, State: state.ExportWaiting, CreatedAt: tx.Now,
		ExpiresAt: tx.Now + p.Kept}
	asked := e
	tx.PutExport(&asked)
	tx.PutWork(&state.Work{ID: p.ID, Kind: work.Export, Customer: p.Customer,
		State: state.WorkReady, At: tx.Now, Created: tx.Now, Advanced: tx.Now})
	return e, nil
}

// endExport records the first reported outcome of an export.
func endExport(tx *state.Tx, p command.EndExportPayload) (state.Export, error) {
	known := tx.Export(p.ID)
	if known == nil {
		return state.Export{}, fault.Invalid(fault.NotFound, "id", "there is no such export")
	}
	if known.State != state.ExportWaiting {
		return *known, nil
	}
	e := *known
	e.EndedAt = tx.Now
	held := p.Bytes
	for _, other := range tx.Exports(e.Customer) {
		held += other.Bytes
	}
	switch {
	case p.Code != "":
		e.State, e.Code = state.ExportFailed, strings.ToValidUTF8(command.Shortened(p.Code), "")
		e.Detail = strings.ToValidUTF8(command.Shortened(p.Detail), "")
	case held > command.MaxExportBytes:
		e.State, e.Code = state.ExportFailed, string(fault.LimitReached)
		e.Detail = "the files of the customer's kept exports would be too large together"
	default:
		e.State, e.Blob, e.Bytes, e.Rows, e.Digest = state.ExportReady, p.Blob, p.Bytes, p.Rows,
			p.Digest
	}
	ended := e
	tx.PutExport(&ended)
	return e, nil
}

func dropExport(tx *state.Tx, p command.DropExportPayload) (command.None, error) {
	known := tx.Export(p.ID)
	if known == nil || known.Customer != p.Customer {
		return command.None{}, fault.Invalid(fault.NotFound, "id", "there is no such export")
	}
	removeExport(tx, known)
	return command.None{}, nil
}

// removeExport removes an export with its background work. Nobody owns its file from then on.
func removeExport(tx *state.Tx, e *state.Export) {
	if item := tx.WorkItem(e.ID); item != nil {
		tx.RemoveWork(item)
	}
	tx.RemoveExport(e)
}

// expireExports removes expired exports, a bounded number at a time.
func expireExports(tx *state.Tx) {
	var old []*state.Export
	tx.ExportsByExpiry(func(e *state.Export) bool {
		if e.ExpiresAt > tx.Now || len(old) == maxExpiredPerTick {
			return false
		}
		old = append(old, e)
		return true
	})
	for _, e := range old {
		removeExport(tx, e)
	}
}
