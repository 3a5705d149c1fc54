package rowstoretest

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"slices"

	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/rowstore"
)

// PutAudit implements rowstore.Archive.
func (a *Archive) PutAudit(_ context.Context, entries []rowstore.AuditRecord) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, e := range entries {
		if !slices.ContainsFunc(a.audit, func(known rowstore.AuditRecord) bool {
			return known.Number == e.Number && known.Generation == e.Generation &&
				known.Hash == e.Hash
		}) {
			a.audit = append(a.audit, e)
		}
	}
	return nil
}

// Audit implements rowstore.Archive.
func (a *Archive) Audit(_ context.Context, q rowstore.AuditQuery) ([]rowstore.AuditRecord, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	var found []rowstore.AuditRecord
	for _, e := range a.audit {
		beyond := q.Beyond == 0 || q.Descending && e.Number < q.Beyond ||
			!q.Descending && e.Number > q.Beyond
		if on(q.Path, e.Generation, e.Sealed) && beyond && (q.Actor == "" || q.Actor == e.Actor) &&
			(q.Customer == "" || q.Customer == e.Customer) && (q.From == 0 || e.At >= q.From) &&
			(q.To == 0 || e.At < q.To) {
			found = append(found, e)
		}
	}
	slices.SortFunc(found, func(x, y rowstore.AuditRecord) int {
		n := cmp.Compare(x.Number, y.Number)
		if q.Descending {
			n = -n
		}
		return cmp.Or(n, bytes.Compare(x.Generation[:], y.Generation[:]),
			bytes.Compare(x.Hash[:], y.Hash[:]))
	})
	return found[:min(q.Limit, len(found))], nil
}

// AuditHead implements rowstore.Archive.
func (a *Archive) AuditHead(_ context.Context, path rowstore.Path) (head uint64, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, e := range a.audit {
		if on(path, e.Generation, e.Sealed) {
			head = max(head, e.Number)
		}
	}
	return head, nil
}

// auditRecord returns an entry of a trail.
func auditRecord(generation ids.ID, number uint64, actor, customer string) rowstore.AuditRecord {
	body := fmt.Appendf(nil, "%s %d %s %s \x00\xff", generation, number, actor, customer)
	return rowstore.AuditRecord{Generation: generation, Number: number, Hash: sha256.Sum256(body),
		Sealed: number * 10, At: int64(number) * 1000, Actor: actor, Customer: customer, Body: body}
}

// testAudit: the trail reads like that of the archive in memory. Two entries with one number are
// both read.
func testAudit(s *suite) {
	first, second := ids.ID{1}, ids.ID{2}
	root, own := rowstore.Path{{Generation: first, Upto: 1_000}}, rowstore.Path{
		{Generation: second, Upto: 1_000}, {Generation: first, Upto: 50}}
	head := func(path rowstore.Path, want uint64) {
		s.Helper()
		got, err := s.store.AuditHead(s.ctx, path)
		s.ok(err)
		s.equal("head of the trail", want, got)
	}
	head(root, 0)
	var all []rowstore.AuditRecord
	for n := uint64(1); n <= 12; n++ {
		all = append(all, auditRecord(first, n, fmt.Sprint("a'", n%3), fmt.Sprint("c", n%2)))
	}
	for n := uint64(6); n <= 9; n++ { // after a restore to index 50
		all = append(all, auditRecord(second, n, "a'1", "c1"))
	}
	other := all[3]
	other.Body = append(slices.Clone(other.Body), '!')
	other.Hash = sha256.Sum256(other.Body)
	model := &Archive{}
	for _, part := range [][]rowstore.AuditRecord{nil, all[:5], all[3:], all, {other}} {
		s.ok(s.store.PutAudit(s.ctx, part))
		s.ok(model.PutAudit(s.ctx, part))
	}
	head(root, 12)
	head(own, 9)
	head(rowstore.Path{{Generation: ids.ID{3}, Upto: 1_000}}, 0)
	head(nil, 0)
	for _, path := range []rowstore.Path{nil, root, own} {
		for _, q := range []rowstore.AuditQuery{{}, {Actor: "a'1"}, {Customer: "c1"},
			{Actor: "a'1", Customer: "c0"}, {From: 4_000}, {To: 4_000}, {From: 4_000, To: 9_000},
			{Beyond: 4}, {Beyond: 12}, {Actor: "nobody"}} {
			for _, most := range []int{1, 3, rowstore.MaxPast} {
				for _, q.Descending = range []bool{false, true} {
					q.Path, q.Limit = path, most
					want, _ := model.Audit(s.ctx, q)
					got, err := s.store.Audit(s.ctx, q)
					s.ok(err)
					s.equal(fmt.Sprintf("audit %+v", q), want, got)
				}
			}
		}
	}
}
