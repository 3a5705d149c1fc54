package ingest

import (
	"context"
	"os"
	"testing"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/reading"
	"shoal.dev/shoal/pkg/rowstore"
	"shoal.dev/shoal/pkg/stream"
)

// poisoned is a store that panics at some pages: only with rows, or always.
type poisoned struct {
	*fakeStore
	at func(p *model.Page) bool
}

func (s poisoned) PutPages(ctx context.Context, pages []rowstore.PageWrite) ([]*model.Receipt,
	error) {
	for _, w := range pages {
		if s.at(w.Page) {
			panic("a store's")
		}
	}
	return s.fakeStore.PutPages(ctx, pages)
}

// A page that panics in the completion of rows or in the store is stored as unparsable, without
// rows and uncharged. Its bytes are kept, and the other pages of its batch are stored normally. A
// page that the store refuses even then is left out.
func TestPoisonIsOnePagesEnd(t *testing.T) {
	const bad, all = uint32(3), uint32(8)
	never := func(*model.Page) bool { return false }
	for name, c := range map[string]struct {
		reading func(p *model.Page)
		at      func(p *model.Page) bool
		lost    bool // without a receipt
		kept    int  // pages
	}{
		"rows": {reading: func(p *model.Page) {
			if p.Unit.Seq == bad {
				panic("a row's")
			}
		}, at: never, kept: 1},
		"store": {at: func(p *model.Page) bool {
			return p.Unit.Seq == bad &&
				len(p.Rows) > 0
		}, kept: 1},
		"store, whatever it is": {at: func(p *model.Page) bool { return p.Unit.Seq == bad },
			lost: true, kept: 2},
	} {
		t.Run(name, func(t *testing.T) {
			log, store, dir := newLog(t, 1), newStore(), t.TempDir()
			defer log.Close()
			billing, _ := log.Consume(stream.Receipts, "billing")
			for seq := range all {
				p := page(openJob, seq)
				p.PriceRow, p.Quantity = "row", 1
				_ = log.Publish(t.Context(), stream.Pages, 0, stream.EncodePage(p))
			}
			g := New(Config{Log: log, Store: poisoned{store, c.at}, Control: testControl(),
				Reading: c.reading,
				Reader:  reading.New("ingest", reading.Config{Dir: dir, Clock: clock.System{}})})
			stop := start(g)
			want := int(all)
			if c.lost {
				want--
			}
			seen := map[uint32]model.Outcome{}
			for _, m := range readReceipts(t, billing, want) {
				receipt, _, err := stream.DecodeReceipts(m.Value)
				if err != nil {
					t.Fatal(err)
				}
				seen[receipt.Unit.Seq] = receipt.Outcome
			}
			if err := stop(); err != nil {
				t.Fatal(err)
			}
			for seq := range all {
				stored := store.pages[unit{openJob, model.Unit{Seq: seq}}].Page
				switch {
				case seq != bad:
					if seen[seq] != model.Delivered || len(stored.Rows) != 1 ||
						stored.PriceRow != "row" {
						t.Errorf("page %d: %v, %+v", seq, seen[seq], stored)
					}
				case c.lost:
					if _, ok := seen[seq]; ok || stored != nil {
						t.Errorf("page %d has a receipt", seq)
					}
				case seen[seq] != model.Errored || stored.Code != string(fault.PageUnparsable) ||
					stored.PriceRow != "" ||
					stored.Quantity != 0 || len(stored.Rows) != 0 || !stored.Last ||
					stored.URL != "http://a.test/":
					t.Errorf("page %d: %v, %+v", seq, seen[seq], stored)
				}
			}
			if kept, err := os.ReadDir(dir); err != nil || len(kept) != 2*c.kept {
				t.Errorf("kept: %v, %v", kept, err)
			}
		})
	}
}

// A panic in a call of the control plane is not caught. So the step acknowledges nothing.
func TestPanicBesideReadingStaysFatal(t *testing.T) {
	g := New(Config{Store: newStore(), Control: panickingControl{}})
	p := page(openJob, 1)
	caught := reading.Catch(func() { _ = g.admit(t.Context(), &batch{items: []item{{page: &p}}}) })
	if caught == nil {
		t.Error("swallowed")
	}
}

type panickingControl struct{}

func (panickingControl) View() Jobs                          { return panickingControl{} }
func (panickingControl) Fresh(context.Context) (Jobs, error) { return nil, nil }
func (panickingControl) Job(ids.ID) *client.Job              { panic("the state's") }
