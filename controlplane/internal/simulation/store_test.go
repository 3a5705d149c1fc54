package simulation

import (
	"context"
	"slices"

	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/rowstore"
	"shoal.dev/shoal/pkg/stream"
)

// taskLog is the tasks topic as the leader sees it.
type taskLog struct {
	stream.Log
	w *world
}

func (l taskLog) TryPublish(_ stream.Topic, partition int, records ...[]byte) error {
	if l.w.r.IntN(10) == 0 {
		return stream.ErrFull
	}
	for _, record := range records {
		if task, _, _ := stream.DecodeTasks(record); task == nil || !l.w.lossy ||
			l.w.r.IntN(10) < 3 {
			l.w.tasks[partition] = append(l.w.tasks[partition], record)
		}
	}
	return nil
}

// memoryStore is the row store: link lists, page records, and the fetches that rows belong to.
type memoryStore struct {
	lists   map[ids.ID][]string
	records map[ids.ID]map[model.Unit]*model.Page
	sealed  map[ids.ID]bool
	read    func() // lets others act while a list is read
}

func newMemoryStore() *memoryStore {
	return &memoryStore{lists: map[ids.ID][]string{},
		records: map[ids.ID]map[model.Unit]*model.Page{}, sealed: map[ids.ID]bool{}}
}

func (s *memoryStore) Links(_ context.Context, list ids.ID, from uint32, most int) ([]rowstore.Link,
	error) {
	s.read()
	var links []rowstore.Link
	for seq := from; int(seq) < len(s.lists[list]) && len(links) < min(most, 3); seq++ {
		links = append(links, rowstore.Link{Seq: seq, URL: s.lists[list][seq]})
	}
	return links, nil
}

func (s *memoryStore) LinksAt(_ context.Context, list ids.ID, seqs []uint32) ([]rowstore.Link,
	error) {
	s.read()
	var links []rowstore.Link
	for _, seq := range seqs {
		links = append(links, rowstore.Link{Seq: seq, URL: s.lists[list][seq]})
	}
	return links, nil
}

func (s *memoryStore) PutPages(_ context.Context, pages []rowstore.PageWrite) ([]*model.Receipt,
	error) {
	receipts := make([]*model.Receipt, len(pages))
	for i, write := range pages {
		p := write.Page
		if s.sealed[p.Job] {
			continue
		}
		if s.records[p.Job] == nil {
			s.records[p.Job] = map[model.Unit]*model.Page{}
		}
		if s.records[p.Job][p.Unit] == nil {
			s.records[p.Job][p.Unit] = p
		}
		receipts[i] = receiptOf(s.records[p.Job][p.Unit])
	}
	return receipts, nil
}

func receiptOf(p *model.Page) *model.Receipt {
	return &model.Receipt{Job: p.Job, Unit: p.Unit, Outcome: p.Outcome, PriceRow: p.PriceRow,
		Quantity: p.Quantity,
		Items:    uint32(len(p.Rows)), Last: p.Last, Next: p.Next}
}

func (s *memoryStore) Records(_ context.Context, job ids.ID, units []model.Unit) ([]model.Receipt,
	error) {
	var receipts []model.Receipt
	for _, unit := range units {
		if p := s.records[job][unit]; p != nil {
			receipts = append(receipts, *receiptOf(p))
		}
	}
	return receipts, nil
}

func (s *memoryStore) units(job ids.ID) []model.Unit {
	var units []model.Unit
	for unit := range s.records[job] {
		units = append(units, unit)
	}
	slices.SortFunc(units, func(a, b model.Unit) int {
		if a.Seq != b.Seq {
			return int(a.Seq) - int(b.Seq)
		}
		return int(a.Page) - int(b.Page)
	})
	return units
}

func (s *memoryStore) EachRecord(_ context.Context, job ids.ID,
	visit func(rowstore.Record) error) error {
	for _, unit := range s.units(job) {
		if err := visit(rowstore.Record{Unit: unit, Last: s.records[job][unit].Last}); err != nil {
			return err
		}
	}
	return nil
}

func (s *memoryStore) Sealed(_ context.Context, job ids.ID) (bool, error) {
	return s.sealed[job],
		nil
}

func (s *memoryStore) Seal(_ context.Context, job ids.ID,
	settled func(model.Unit, bool) bool) error {
	s.sealed[job] = true
	if settled == nil {
		return nil
	}
	for _, unit := range s.units(job) {
		if !settled(unit, s.records[job][unit].Last) {
			delete(s.records[job], unit)
		}
	}
	return nil
}
