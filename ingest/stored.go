package ingest

import (
	"context"

	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/upload"
)

// sealed says why a batch could not be stored. nil: another owner has stored all batches and seals
// the run. Otherwise the upload was stopped, or a restore reopened it after the run was sealed.
func (i *importing) sealed(ctx context.Context, unit model.Unit) error {
	there, err := i.Store.Records(ctx, i.job.ID, []model.Unit{unit})
	if err != nil || len(there) > 0 {
		return err
	}
	view, err := i.Client.Fresh(ctx)
	if err != nil {
		return err
	}
	if known := view.Import(i.job.ID); known == nil || known.Ended != 0 {
		return errStopped
	}
	return &upload.Refusal{Reason: gone}
}

// has says whether a batch is already stored, and with how many rows.
func (i *importing) has(ctx context.Context, unit model.Unit) (rows uint32, there bool, err error) {
	if i.stored == nil || unit.Seq%knownAtOnce == 0 {
		units := make([]model.Unit, knownAtOnce)
		for n := range units {
			units[n].Seq = unit.Seq + uint32(n)
		}
		receipts, err := i.Store.Records(ctx, i.job.ID, units)
		if err != nil {
			return 0, false, err
		}
		i.stored = make(map[model.Unit]uint32, len(receipts))
		for n := range receipts {
			i.stored[receipts[n].Unit] = receipts[n].Items
		}
	}
	rows, there = i.stored[unit]
	return rows, there, nil
}
