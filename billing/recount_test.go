package billing

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/rowstore"
)

func TestCompare(t *testing.T) {
	job := ids.ID{1}
	sound := func() (*client.Entry, *client.Job, rowstore.Recount) {
		return &client.Entry{Customer: "ann", ID: ids.ID{2}, Job: job, Amount: -300, FreeDelta: -5,
				Lines: []client.Line{{RowKey: "tier:plain", Pages: 2, FreePages: 5, UnitPrice: 150, Amount: -300}}},
			&client.Job{ID: job, Closed: true, Delivered: 7, Pages: 9, Items: 11, Charged: 300},
			rowstore.Recount{Delivered: 7, Errored: 2, Items: 11, Quantity: map[string]uint64{"tier:plain": 7}}
	}
	diff := func(what string, ledger, records int64) Difference {
		return Difference{Customer: "ann", Entry: ids.ID{2}, Job: job, What: what, Ledger: ledger, Records: records}
	}
	tests := []struct {
		name string
		spot func(*client.Entry, *client.Job, *rowstore.Recount)
		want []Difference
	}{
		{"sound", func(*client.Entry, *client.Job, *rowstore.Recount) {}, nil},
		{"a page not charged", func(_ *client.Entry, _ *client.Job, r *rowstore.Recount) { r.Quantity["tier:plain"]++ },
			[]Difference{diff("tier:plain", 7, 8)}},
		{"a row not in the ledger", func(_ *client.Entry, _ *client.Job, r *rowstore.Recount) { r.Quantity["tier:render"] = 1 },
			[]Difference{diff("tier:render", 0, 1)}},
		{"a page charged twice", func(e *client.Entry, j *client.Job, _ *rowstore.Recount) {
			e.Lines[0].Pages, e.Lines[0].Amount, e.Amount, j.Charged = 3, -450, -450, 450
		}, []Difference{diff("tier:plain", 8, 7)}},
		{"a line's amount", func(e *client.Entry, j *client.Job, _ *rowstore.Recount) {
			e.Lines[0].Amount, e.Amount, j.Charged = -301, -301, 301
		}, []Difference{diff("tier:plain amount", -301, -300)}},
		{"the entry's amount", func(e *client.Entry, _ *client.Job, _ *rowstore.Recount) { e.Amount = -150 },
			[]Difference{diff("amount", -150, -300), diff("charged", 300, 150)}},
		{"free requests", func(e *client.Entry, _ *client.Job, _ *rowstore.Recount) { e.FreeDelta = -4 },
			[]Difference{diff("freeRequestsDelta", -4, -5)}},
		{"counters", func(_ *client.Entry, j *client.Job, _ *rowstore.Recount) { j.Delivered, j.Pages, j.Items = 6, 8, 10 },
			[]Difference{diff("pages delivered", 6, 7), diff("pages", 8, 9), diff("items", 10, 11)}},
		{"an open run's records may be ahead", func(_ *client.Entry, j *client.Job, r *rowstore.Recount) {
			j.Closed = false
			r.Delivered, r.Quantity["tier:plain"], r.Items = 8, 8, 12
		}, nil},
		{"an open run's ledger must not be ahead", func(_ *client.Entry, j *client.Job, r *rowstore.Recount) {
			j.Closed = false
			r.Quantity["tier:plain"] = 6
		}, []Difference{diff("tier:plain", 7, 6)}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			entry, run, records := sound()
			test.spot(entry, run, &records)
			if d := cmp.Diff(test.want, compare(entry, run, records)); d != "" {
				t.Fatal(d)
			}
		})
	}
}
