package fsm

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"testing"

	"shoal.dev/shoal/controlplane/internal/archive"
	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
)

// Actors of the tests.
var (
	anAdmin    = &state.Actor{Subject: "root", Admin: true, Customer: "a", Operation: "svc_x"}
	aCustomer  = &state.Actor{Key: ids.ID{7}, Customer: "a", Operation: "svc_y"}
	aliceFails = &state.Actor{Address: "10.0.0.9", Operation: "svc_sign_in"}
)

// by applies a command caused by an actor, under an id.
func (b *bench) by(actor *state.Actor, id ids.ID, payload command.Payload) Result {
	b.t.Helper()
	data, err := b.m.EncodeBy(actor, id, b.now, payload, nil)
	if err != nil {
		b.t.Fatal(err)
	}
	b.index++
	return b.m.Apply(b.index, data)
}

// trail returns the audit trail of the state, whose chain must be valid.
func (b *bench) trail() (trail []*state.AuditEntry) {
	b.t.Helper()
	var before state.Hash
	b.view().EachAudit(func(e *state.AuditEntry) bool {
		record, err := archive.EncodeAudit(e)
		if err != nil {
			b.t.Fatal(err)
		}
		if len(trail) > 0 && (e.Before != before || e.Number != trail[len(trail)-1].Number+1) {
			b.t.Errorf("entry %d does not follow the one before", e.Number)
		}
		before, trail = record.Hash, append(trail, e)
		return true
	})
	if head := b.view().AuditHead(); len(trail) > 0 && (head.Hash != before ||
		int(head.Waiting) != len(trail)) {
		b.t.Errorf("the head is not the last entry's: %+v", head)
	}
	return trail
}

// Everything an admin changes is told, with before and after. For a customer only its keys are
// told. Commands that change nothing, are refused or are repeats are not told.
func TestTheTrailTellsWhatWasDone(t *testing.T) {
	b := newBench(t)
	mint := func(n byte) command.MintKeyPayload {
		return command.MintKeyPayload{ID: ids.ID{n}, Customer: "a", Prefix: fmt.Sprint("prefix", n),
			Hash: [32]byte{n, 0xfe, 0xfd}, Name: "k", Scope: model.ScopeUser}
	}
	put := command.PutGroupPayload{Create: true, ID: ids.ID{9}, Customer: "b", Name: "g"}
	harvest := b.ask("a", b.harvestable("a"))
	export := command.AskExportPayload{ID: ids.ID{8}, Customer: "a", Owner: "a", Kept: 1_000,
		Groups: []ids.ID{{9}}}
	request := fmt.Sprintf(`"requestSha256":"%x"`, sha256.Sum256(nil))
	for _, test := range []struct {
		name   string
		by     *state.Actor
		do     command.Payload
		change string // "": nothing is told
		whom   string
	}{
		{"a block", anAdmin, command.BlockCustomerPayload{Customer: "b", By: "root"},
			`customers b:  -> {"blockedAt":1,"blockedBy":"root"}`, "b"},
		{"again", anAdmin, command.BlockCustomerPayload{Customer: "b", By: "root"}, "", ""},
		{"of nobody", anAdmin, command.BlockCustomerPayload{Customer: "?", By: "root"}, "", ""},
		{"taken back", anAdmin, command.UnblockCustomerPayload{Customer: "b"},
			`customers b: {"blockedAt":1,"blockedBy":"root"} -> `, "b"},
		{"a key", aCustomer, mint(1), "keys " + ids.ID{1}.String() +
			`:  -> {"name":"k","scope":"USER","createdAt":1}`, "a"},
		{"its use", aCustomer, command.TouchKeysPayload{Keys: []command.KeyTouch{{ID: ids.ID{1},
			At: 5}}}, "", ""},
		{"its end", aCustomer, command.RevokeKeyPayload{Customer: "a", ID: ids.ID{1}},
			"keys " + ids.ID{1}.String() + `: {"name":"k","scope":"USER","createdAt":1} -> `, "a"},
		{"a key by nobody", nil, mint(2), "keys " + ids.ID{2}.String() +
			`:  -> {"name":"k","scope":"USER","createdAt":1}`, "a"},
		{"a customer's group", aCustomer, put, "", ""},
		{"an admin's", anAdmin, command.PutGroupPayload{ID: ids.ID{9}, Customer: "b", Name: "h"},
			"groups " + ids.ID{9}.String() + `: {"name":"g","dataTable":"","startType":"",` +
				`"shouldMatchProducts":false,"retention":0} -> {"name":"h","dataTable":"",` +
				`"startType":"","shouldMatchProducts":false,"retention":0}`, "b"},
		{"an adjustment", nil, command.AdjustWalletPayload{Customer: "a", Entry: ids.ID{8},
			Amount: 5, Note: "gift"}, "entries " + ids.ID{8}.String() +
			`:  -> {"amountMicros":5,"balanceAfterMicros":5,"note":"gift"}`, "a"},
		{"a harvest", anAdmin, harvest, "harvests " + harvest.ID.String() + `:  -> {"scraperId":"` +
			harvest.Scraper.String() + `","state":"RUNNING","cap":` + fmt.Sprint(harvest.Cap) +
			`}`, "a"},
		{"a customer's", aCustomer, b.ask("a", b.harvestable("a")), "", ""},
		{"a kept export", anAdmin, export, "exports " + export.ID.String() +
			`:  -> {"owner":"a","groupIds":"` + ids.ID{9}.String() + `","state":"WAITING",` +
			request + `}`, "a"},
		{"its end", anAdmin, command.DropExportPayload{Customer: "a", ID: export.ID}, "exports " +
			export.ID.String() + `: {"owner":"a","groupIds":"` + ids.ID{9}.String() +
			`","state":"WAITING",` + request + `} -> `, "a"},
		{"what is only looked at", anAdmin, command.PreviewDeletePayload{Token: "t",
			Deletion: command.Deletion{Customer: "a", Operation: command.OpDeleteScraper,
				Target: ids.ID{3}}}, "", ""},
	} {
		before, id := len(b.trail()), b.ids.New()
		for range 2 {
			b.by(test.by, id, test.do)
		}
		trail := b.trail()
		if test.change == "" {
			if len(trail) != before {
				t.Errorf("%s is told: %+v", test.name, trail[before])
			}
			continue
		}
		if len(trail) != before+1 {
			t.Fatalf("%s: %d entries", test.name, len(trail)-before)
		}
		e, told := trail[before], []string{}
		for _, c := range e.Changes {
			told = append(told, fmt.Sprintf("%s %s: %s -> %s", c.Table, c.Record, c.Before,
				c.After))
		}
		if !slices.Contains(told, test.change) || e.Customer != test.whom {
			t.Errorf("%s: of %q: %q", test.name, e.Customer, told)
		}
		if test.by != nil && (e.Actor != *test.by || e.Action != test.by.Operation) ||
			test.by == nil && e.Action != actionOf(test.do) {
			t.Errorf("%s: by %+v, as %s", test.name, e.Actor, e.Action)
		}
		record, err := archive.EncodeAudit(e)
		if err != nil || bytes.Contains(record.Body, []byte{0xfe, 0xfd}) ||
			strings.Contains(string(record.Body), "prefix") {
			t.Errorf("%s tells a secret: %q", test.name, record.Body)
		}
	}
}

// The archive's drop is exact: repeated, late or of another generation, it changes nothing.
func TestDroppedAuditEntries(t *testing.T) {
	b := newBench(t)
	for n := range byte(6) {
		b.by(anAdmin, b.ids.New(), command.MintKeyPayload{ID: ids.ID{1 + n}, Customer: "a",
			Prefix: fmt.Sprint(n), Scope: model.ScopeUser})
	}
	next := func(most int) command.DropAuditPayload {
		batch, err := archive.NextAudit(b.view(), most)
		if err != nil {
			t.Fatal(err)
		}
		return command.DropAuditPayload{Generation: batch.Generation,
			From: batch.Entries[0].Number, Upto: batch.Entries[len(batch.Entries)-1].Number}
	}
	want := func(archived uint64, left int) {
		t.Helper()
		head := b.view().AuditHead()
		if trail := b.trail(); len(trail) != left || head.Archived != archived || head.Number != 6 {
			t.Errorf("%d entries are left, archived to %d, want %d and %d", len(trail),
				head.Archived, left, archived)
		}
	}
	first := next(2)
	foreign, late := first, first
	foreign.Generation[0]++
	late.From++
	b.must(foreign)
	b.must(late)
	want(0, 6)
	b.must(first)
	want(2, 4)
	b.must(first)
	want(2, 4)
	again := next(3)
	all := next(100)
	b.must(all)
	want(6, 0)
	b.must(again)
	want(6, 0)
	if head := b.view().AuditHead(); head.Waiting != 0 {
		t.Errorf("%+v", head)
	}
}

// Failed sign-ins are counted by minute and address. Too many addresses are counted as one.
func TestFailedSignInsAreSummed(t *testing.T) {
	b := newBench(t)
	const minute = 30_000_000
	b.now = minute * 60_000
	fail := func(address string) {
		t.Helper()
		by := *aliceFails
		by.Address = address
		if r := b.by(&by, b.ids.New(), command.NoteSignInPayload{Failed: true}); r.Err != nil {
			t.Fatal(r.Err)
		}
	}
	id := b.ids.New()
	for range 2 { // one command, whose answer was lost
		b.by(aliceFails, id, command.NoteSignInPayload{Failed: true})
	}
	fail("10.0.0.9")
	for n := range 1_005 {
		fail(fmt.Sprint("10.1.", n/256, ".", n%256))
	}
	b.must(command.TickPayload{})
	if trail := b.trail(); len(trail) > 0 {
		t.Fatalf("told before the minute is over: %+v", trail[0])
	}
	b.now += 60_000
	b.must(command.TickPayload{})
	b.must(command.TickPayload{})
	b.must(command.TickPayload{})
	counts := map[string]uint32{}
	for _, e := range b.trail() {
		counts[e.Actor.Address] += e.Count
		if e.Action != state.FailedSignIn || e.FailedFrom != minute*60_000 || e.At <= e.FailedFrom {
			t.Errorf("%+v", e)
		}
	}
	if len(counts) != 1_001 || counts["10.0.0.9"] != 2 || counts[""] != 6 {
		t.Errorf("%d addresses, %d and %d", len(counts), counts["10.0.0.9"], counts[""])
	}
	b.refused(command.NoteSignInPayload{}, fault.InvalidRequest)
	b.by(anAdmin, b.ids.New(), command.NoteSignInPayload{Action: "sign-in"})
	trail := b.trail()
	if e := trail[len(trail)-1]; e.Action != "sign-in" || e.Actor != *anAdmin {
		t.Errorf("%+v", e)
	}
}

// Nothing is told until every node can apply it.
func TestTheTrailWaitsForItsVersion(t *testing.T) {
	m := founded(t, 0)
	data, err := m.EncodeBy(anAdmin, ids.ID{2}, 1, command.OpenCustomerPayload{Customer: "a"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if env, _, err := m.decode(m.commands, data); err != nil || env.Actor != nil {
		t.Errorf("an actor is appended: %+v, %v", env.Actor, err)
	}
	m.Apply(2, data)
	data, err = m.Encode(ids.ID{3}, 1, command.MintKeyPayload{ID: ids.ID{1}, Customer: "a"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	m.Apply(3, data)
	if head := m.Store().View().AuditHead(); head.Number != 0 {
		t.Errorf("%+v", head)
	}
}

// A restore continues from the backup's head and names the one that it abandons. The abandoned
// entries are archived, too, but are on no path.
func TestTheTrailOverRestores(t *testing.T) {
	b := newBench(t)
	mint := func(n byte) {
		t.Helper()
		if r := b.by(anAdmin, b.ids.New(), command.MintKeyPayload{ID: ids.ID{n}, Customer: "a",
			Prefix: fmt.Sprint(n)}); r.Err != nil {
			t.Fatal(r.Err)
		}
	}
	mint(1)
	mint(2)
	first := b.view().AuditHead()
	backup := written(t, b.m.Snapshot())
	mint(3)
	left, was := b.view().AuditHead(), b.m.Store()
	restored := New()
	if err := restored.Restore(strings.NewReader(backup)); err != nil {
		t.Fatal(err)
	}
	if _, err := restored.Store().Succeed(was, state.Restoration{Generation: ids.ID{0, 1},
		Actor: anAdmin}); err != nil {
		t.Fatal(err)
	}
	b.m = restored
	mint(4)
	var path, off []*state.AuditEntry
	b.view().EachAudit(func(e *state.AuditEntry) bool {
		if b.view().OnPath(e) {
			path = append(path, e)
		} else {
			off = append(off, e)
		}
		return true
	})
	if len(path) != 4 || len(off) != 1 || off[0].Number != 3 {
		t.Fatalf("%d entries on the path, %+v beside it", len(path), off)
	}
	e := path[2]
	if e.Action != state.Restored || e.Number != 3 || e.Before != first.Hash ||
		e.Restored == nil || e.Restored.Number != left.Number || e.Restored.Hash != left.Hash ||
		e.Actor != *anAdmin {
		t.Errorf("the restore: %+v", e)
	}
	for range 5 {
		batch, err := archive.NextAudit(b.view(), 100)
		if err != nil {
			t.Fatal(err)
		}
		if len(batch.Entries) == 0 {
			break
		}
		b.must(command.DropAuditPayload{Generation: batch.Generation,
			From: batch.Entries[0].Number, Upto: batch.Entries[len(batch.Entries)-1].Number})
	}
	if head := b.view().AuditHead(); head.Archived != 4 || head.Waiting != 0 {
		t.Errorf("%+v", head)
	}
}

// Every command has a unique name in the trail, whoever proposes it.
func TestEveryCommandHasAName(t *testing.T) {
	known := map[string]command.Number{}
	for number, payload := range samples(t, New()) {
		name := actionOf(payload)
		if other, twice := known[name]; twice || len(name) < 4 || len(name) > maxActionBytes ||
			strings.Trim(name, "abcdefghijklmnopqrstuvwxyz-") != "" || name[0] == '-' {
			t.Errorf("command %d is called %q, command %d too: %v", number, name, other, twice)
		}
		known[name] = number
	}
	if known["move-schedules"] == 0 || known["put-settings"] == 0 {
		t.Errorf("the names are %v", known)
	}
	b := newBench(t)
	b.must(command.AdjustWalletPayload{Customer: "a", Entry: b.ids.New(), Amount: 7})
	if trail := b.trail(); len(trail) != 1 || trail[0].Action != "adjust-wallet" {
		t.Errorf("told: %+v", trail)
	}
}
