package state

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"shoal.dev/shoal/controlplane/internal/codec"
	"shoal.dev/shoal/controlplane/internal/codec/codectest"
	"shoal.dev/shoal/pkg/ids"
)

var update = flag.Bool("update", false, "write the golden file of the current snapshot")

// current is the golden file of the encoding in use. A released change of the encoding gets a new
// file here; the old ones stay readable.
const current = "snapshot-v2"

// sampleStore has a record in each table and a run, with every field set.
func sampleStore(t *testing.T) *Store {
	t.Helper()
	s := NewStore()
	var content Content
	codectest.Fill(&content)
	err := s.Update(7, 1_700_000_000_000, func(tx *Tx) error {
		for _, table := range tables() {
			record := table.empty()
			codectest.Fill(record)
			switch record := record.(type) {
			case *Cluster:
				record.Version = SnapshotVersion
			case *Claim:
				record.Operation, record.Key = "", "" // the name replaces them
			case *noticePack:
				var notice Notice
				codectest.Fill(&notice)
				record.Packed = packNotice(&notice)
			case *Recipe:
				record.Content, record.Recipe = content.Hash, content.Recipe
			case *Scraper:
				record.Content = content.Hash
				record.share(&content.Recipe)
			}
			tx.insert(table, record)
		}
		run := NewRun(ids.ID{9})
		for _, seq := range []uint32{1, 2, 3, 70_000} {
			run.Close(seq)
		}
		for seq := range uint32(2) {
			out, chain := &Out{}, &Chain{}
			codectest.Fill(out)
			codectest.Fill(chain)
			run.Out[10+seq] = out
			run.SetAside(20+seq, *chain)
			run.Reserved += out.Money()
			run.Out[30+seq] = &Out{Number: 9 - uint64(seq), Attempt: 1, Grant: 1, Price: 7}
			run.Reserved += 7
		}
		tx.AddRun(run)
		tx.NextDispatch()
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func write(t *testing.T, s *Store) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := s.Snapshot().Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestSnapshotHoldsEverything(t *testing.T) {
	want := sampleStore(t)
	data := write(t, want)
	got, err := Restore(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	for _, table := range tables() {
		if d := cmp.Diff(records(t, want, table.name), records(t, got, table.name)); d != "" {
			t.Errorf("table %s does not survive a snapshot: %s", table.name, d)
		}
	}
	for id, run := range want.runs {
		restored := got.runs[id]
		if restored == nil {
			t.Fatalf("run %s does not survive a snapshot", id)
		}
		if d := cmp.Diff(run.Out, restored.Out) + cmp.Diff(run.Begun, restored.Begun); d != "" {
			t.Errorf("the sets of a run do not survive a snapshot: %s", d)
		}
		if !run.Closed.Equals(restored.Closed) || run.Reserved != restored.Reserved ||
			run.Job != restored.Job {
			t.Errorf("a run does not survive a snapshot: %+v, want %+v", restored, run)
		}
	}
	if got.index != want.index || got.now != want.now || got.dispatched != want.dispatched {
		t.Error("the header does not survive a snapshot")
	}
	if !bytes.Equal(data, write(t, got)) {
		t.Error("a restored state has another snapshot")
	}
	want.digest()
	got.digest()
	if d := cmp.Diff(want.Digests()[len(want.digests)-1:], got.Digests()); d != "" {
		t.Errorf("a restored state has another digest: %s", d)
	}
}

// A new field of Run must be added to the test above and to saveRuns.
func TestSampleRunIsComplete(t *testing.T) {
	for _, run := range sampleStore(t).runs {
		value := reflect.ValueOf(*run)
		for i := range value.NumField() {
			if value.Field(i).IsZero() {
				t.Errorf("the run of the sample has no %s", value.Type().Field(i).Name)
			}
		}
	}
}

func records(t *testing.T, s *Store, table string) []any {
	t.Helper()
	var all []any
	for _, c := range s.View().tables {
		if c.kind.name == table {
			scan(c.trees[c.kind.id], "", false, func(record any) bool {
				all = append(all, record)
				return true
			})
		}
	}
	return all
}

func TestReleasedSnapshotsStayReadable(t *testing.T) {
	newest := filepath.Join("testdata", current)
	data := write(t, sampleStore(t))
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(newest, data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	files, err := filepath.Glob(filepath.Join("testdata", "snapshot-v*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no golden snapshots: %v", err)
	}
	for _, file := range files {
		golden, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		restored, err := Restore(bytes.NewReader(golden))
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if file == newest && !bytes.Equal(golden, data) {
			t.Errorf("%s is not what is written now", file)
		}
		if restored.View().Cluster() == nil || len(restored.runs) != 1 {
			t.Errorf("%s: records are missing", file)
		}
	}
}

// Older nodes do not know newer tables. A table is in a snapshot only once it has a record.
func TestEmptyTablesOfLaterStandInNoSnapshot(t *testing.T) {
	s := sampleStore(t)
	held := write(t, s)
	err := s.Update(8, 0, func(tx *Tx) error {
		tx.Undone(func(u *Undone) bool { tx.RemoveUndone(u); return true })
		tx.RevokedByAge(func(r *Revoked) bool { tx.RemoveRevoked(r); return true })
		tx.EachWork(func(w *Work) bool { tx.RemoveWork(w); return true })
		tx.WorkersByLease(func(w *Worker) bool { tx.RemoveWorker(w); return true })
		for _, content := range contentsTable.all(&tx.View, "id_prefix") {
			contentsTable.remove(tx, content)
		}
		archiveTable.remove(tx, archiveTable.first(&tx.View, "id", "archive"))
		for _, profile := range profilesTable.all(&tx.View, "id_prefix") {
			profilesTable.remove(tx, profile)
		}
		for _, launches := range launchesTable.all(&tx.View, "id_prefix") {
			launchesTable.remove(tx, launches)
		}
		for _, pack := range noticesTable.all(&tx.View, "id_prefix") {
			noticesTable.remove(tx, pack)
		}
		tx.MailsDue(func(m *Mail) bool { tx.RemoveMail(m); return true })
		for _, inbox := range inboxesTable.all(&tx.View, "id_prefix") {
			inboxesTable.remove(tx, inbox)
		}
		for _, topUp := range topUpsTable.all(&tx.View, "id_prefix") {
			tx.RemoveTopUp(topUp)
		}
		for _, reversal := range reversalsTable.all(&tx.View, "id_prefix") {
			tx.RemoveReversal(reversal)
		}
		for _, held := range heldRunsTable.all(&tx.View, "id_prefix") {
			tx.RemoveHeldRun(held)
		}
		for _, deleted := range deletedRunsTable.all(&tx.View, "id_prefix") {
			tx.RemoveDeletedRun(deleted)
		}
		tx.DeletedGroups(func(d *DeletedGroup) bool { tx.RemoveDeletedGroup(d); return true })
		for _, hook := range webhooksTable.all(&tx.View, "id_prefix") {
			tx.RemoveWebhook(hook)
		}
		tx.DeliveriesByAge(func(d *Delivery) bool { tx.RemoveDelivery(d); return true })
		for _, removal := range removalsTable.all(&tx.View, "id_prefix") {
			removalsTable.remove(tx, removal)
		}
		tx.EachAudit(func(e *AuditEntry) bool { auditTable.remove(tx, e); return true })
		auditHeadTable.remove(tx, auditHeadTable.first(&tx.View, "id", "head"))
		for _, failures := range auditFailuresTable.all(&tx.View, "id_prefix") {
			auditFailuresTable.remove(tx, failures)
		}
		for _, account := range accountsTable.all(&tx.View, "id_prefix") {
			accountsTable.remove(tx, account)
		}
		tx.SessionsByUse(func(s *Session) bool { tx.RemoveSession(s); return true })
		for _, category := range categoriesTable.all(&tx.View, "id_prefix") {
			tx.RemoveCategory(category)
		}
		for _, subscription := range subscriptionsTable.all(&tx.View, "id_prefix") {
			subscriptionsTable.remove(tx, subscription)
		}
		for _, invoice := range invoicesTable.all(&tx.View, "id_prefix") {
			tx.RemoveInvoice(invoice)
		}
		for _, share := range sharesTable.all(&tx.View, "id_prefix") {
			sharesTable.remove(tx, share)
		}
		for _, category := range categoriesTable.all(&tx.View, "id_prefix") {
			categoriesTable.remove(tx, category)
		}
		tx.SchedulesByDue(func(s *Schedule) bool { tx.disarrange(s.Target); return true })
		tx.TicketsByAge(func(t *Ticket) bool { tx.RemoveTicket(t); return true })
		tx.GrantsByUse(func(g *Grant) bool { tx.RemoveGrant(g); return true })
		tx.GrantCodesByAge(func(c *GrantCode) bool { tx.RemoveGrantCode(c); return true })
		settingsTable.remove(tx, tx.Settings())
		tx.LettersByAge(func(l *Letter) bool { tx.RemoveLetter(l); return true })
		for _, passkey := range passkeysTable.all(&tx.View, "id_prefix") {
			tx.RemovePasskey(passkey)
		}
		tx.ExportsByExpiry(func(e *Export) bool { tx.RemoveExport(e); return true })
		tx.EachHarvest(func(h *Harvest) bool { tx.RemoveHarvest(h); return true })
		for _, i := range importsTable.all(&tx.View, "id_prefix") {
			tx.RemoveImport(i)
		}
		for _, site := range sitesTable.all(&tx.View, "id_prefix") {
			tx.RemoveSite(site)
		}
		for _, c := range cataloguesTable.all(&tx.View, "id_prefix") {
			tx.RemoveCatalogue(c)
		}
		tx.OldestFeedback(func(f *Feedback) bool { tx.RemoveFeedback(f); return true })
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	empty := write(t, s)
	for _, table := range tables() {
		if table.since > 1 && (bytes.Contains(empty, []byte(table.name)) ||
			!bytes.Contains(held, []byte(table.name))) {
			t.Errorf("table %s stands where it must not, or does not where it must", table.name)
		}
	}
}

func TestDamagedSnapshotsAreRefused(t *testing.T) {
	data := write(t, sampleStore(t))
	step := 1
	if testing.Short() {
		step = 7
	}
	for cut := 0; cut < len(data); cut += step {
		if _, err := Restore(bytes.NewReader(data[:cut])); err == nil {
			t.Fatalf("the first %d of %d bytes are taken for a snapshot", cut, len(data))
		}
	}
}

// TestRepeatedRecordsAreRefused: a snapshot with a repeated key is damaged, since nobody can tell
// which record is right.
func TestRepeatedRecordsAreRefused(t *testing.T) {
	mode, _ := codec.New().Modes()
	for _, records := range [][]*Group{
		{{ID: ids.ID{1}, Name: "a"}, {ID: ids.ID{1}, Name: "b"}},
		{{ID: ids.ID{1}, Of: ids.ID{9}}, {ID: ids.ID{2}, Of: ids.ID{9}}},
	} {
		var data bytes.Buffer
		enc := mode.NewEncoder(&data)
		parts := []any{snapshotHeader{Version: 1}, section{Name: "groups", Count: len(records)}}
		for _, g := range records {
			parts = append(parts, g)
		}
		for _, part := range append(parts, section{Name: runsSection}) {
			if err := enc.Encode(part); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := Restore(&data); err == nil || !strings.Contains(err.Error(), "same key") {
			t.Errorf("%v and %v: %v", *records[0], *records[1], err)
		}
	}
}
