package fsm

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"shoal.dev/shoal/controlplane/internal/archive"
	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
)

// An entry is bounded, however much a command changes. What the trail always tells goes on in
// further entries; of the rest the first one counts what it leaves out.
func TestAuditEntriesAreBounded(t *testing.T) {
	b := newBench(t)
	for n := range 80 {
		b.must(command.MintKeyPayload{ID: ids.ID{1, byte(n)}, Customer: "a",
			Prefix: fmt.Sprint(n), Name: strings.Repeat("n", 4_000), Scope: model.ScopeUser})
	}
	largest := 0
	for _, e := range b.trail() {
		record, err := archive.EncodeAudit(e)
		if err != nil {
			t.Fatal(err)
		}
		largest = max(largest, len(record.Body))
	}
	if largest > 1_000 {
		t.Errorf("an entry of a long text has %d bytes", largest)
	}
	before := len(b.trail())
	b.index++
	err := b.m.Store().Update(b.index, 1, func(tx *state.Tx) error {
		tx.By(anAdmin)
		for n := range byte(90) {
			tx.PutWebhook(&state.Webhook{ID: ids.ID{2, n}, Customer: "a"})
			tx.PutWebhook(&state.Webhook{ID: ids.ID{2, n}, Customer: "a", URL: "again"})
		}
		for _, key := range tx.Keys("a") {
			tx.RemoveKey(key)
		}
		tx.Audit("many")
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	told := map[string]int{}
	for n, e := range b.trail()[before:] {
		if len(e.Changes) != 16 || e.Action != "many" || e.Actor != *anAdmin || e.Customer != "a" ||
			(e.More > 0) != (n == 0) {
			t.Errorf("%d changes are told, and %d more: %+v", len(e.Changes), e.More, e)
		}
		for _, c := range e.Changes {
			told[c.Table]++
		}
	}
	if told["keys"] != 80 || told["webhooks"] != 16 {
		t.Errorf("told are %v", told)
	}
}

// What an admin deletes or sends for a customer is told, even if no other record shows it. Each
// change of a webhook is told, too, without its address's path and its secret.
func TestTheTrailTellsDeletionsAndWebhooks(t *testing.T) {
	b := newBench(t)
	s := b.scraper("s", b.schema("a", ids.ID{}, 1, "{}").ID)
	launched, err := b.launch(s.ID)
	if err != nil {
		t.Fatal(err)
	}
	b.must(command.StopRunPayload{Customer: "a", Job: launched.Job})
	group, members := b.members("g", 1)
	hook := b.hook(model.APIKeyCreated)
	b.mint("key")
	put := command.PutWebhookPayload{ID: hook, Customer: "a", URL: "https://u:p@b.test/s3cret?k=1",
		Events: []model.Event{model.RunFailed}}
	send := command.SendDeliveryPayload{Webhook: hook, Customer: "a",
		Message: b.calls(hook)[0].Notice.ID}
	ask := command.SendDeliveryPayload{Webhook: hook, Customer: "a", Message: b.ids.New(),
		Test: true}
	run := deletionOf(launched.Job, s)
	scraper := command.Deletion{Customer: "a", Operation: command.OpDeleteScraper,
		Target: members[0], Query: command.WithData}
	all := scraper
	all.Operation, all.Target = command.OpDeleteGroup, group
	for _, d := range []command.Deletion{run, scraper, all} {
		b.must(command.PreviewDeletePayload{Deletion: d, Token: d.Target.String()})
	}
	for _, test := range []struct {
		name string
		do   command.Payload
		want string
	}{
		{"a run's rows", command.DeleteRunPayload{Deletion: run, Token: run.Target.String()},
			"deletedRuns " + run.Target.String() + `:  -> {"groupId":"` + s.Group.String() +
				`","deletedAt":1}`},
		{"a scraper with rows", command.DeleteScraperPayload{Deletion: scraper,
			Token: scraper.Target.String()}, "removals " + group.String() + "/" +
			scraper.Target.String() + `:  -> {"deletedAt":1}`},
		{"a message again", send, "deliveries " + hook.String() + "/" + send.Message.String() +
			`:  -> {"event":"API_KEY_CREATED","asked":`},
		{"and again", send, `{"event":"API_KEY_CREATED","asked":`},
		{"a test", ask, "deliveries " + hook.String() + "/" + ask.Message.String() +
			`:  -> {"event":"` + string(model.WebhookTest) + `","asked":`},
		{"an address", put, `{"origin":"https://b.test","urlSha256":"` +
			fmt.Sprintf("%x", sha256.Sum256([]byte(put.URL))) + `","events":"SCRAPER_RUN_FAILED"}`},
		{"a secret", command.RotateWebhookPayload{ID: hook, Customer: "a",
			Secret: []byte("new")}, `"events":"SCRAPER_RUN_FAILED","secretRotated":`},
		{"another", command.RotateWebhookPayload{ID: hook, Customer: "a", Secret: []byte("newer"),
			Overlap: 9}, `,"formerSecretUntil":10}`},
		{"the end of a webhook", command.DeleteWebhookPayload{ID: hook, Customer: "a"},
			`,"formerSecretUntil":10} -> `},
	} {
		before := len(b.trail())
		if r := b.by(anAdmin, b.ids.New(), test.do); r.Err != nil {
			t.Fatal(test.name, r.Err)
		}
		trail := b.trail()
		if len(trail) != before+1 {
			t.Fatalf("%s: %d entries", test.name, len(trail)-before)
		}
		text := ""
		for _, c := range trail[before].Changes {
			text += fmt.Sprintf("%s %s: %s -> %s\n", c.Table, c.Record, c.Before, c.After)
		}
		if !strings.Contains(text, test.want) || strings.Contains(text, "s3cret") ||
			strings.Contains(text, "u:p") || trail[before].Customer != "a" {
			t.Errorf("%s: %s", test.name, text)
		}
	}
	before := len(b.trail())
	b.must(command.PreviewDeletePayload{Deletion: all, Token: "t"}) // the group has changed
	b.by(anAdmin, b.ids.New(), command.DeleteGroupPayload{Deletion: all, Token: "t"})
	if trail := b.trail(); len(trail) != before+1 || !slices.ContainsFunc(trail[before].Changes,
		func(c state.AuditChange) bool {
			return c.Table == "deletedGroups" && c.After == `{"rows":true,"deletedAt":1}`
		}) {
		t.Errorf("a group with rows: %+v", trail[before:])
	}
	told := len(b.trail())
	b.must(command.NoteRowsRemovedPayload{Jobs: []ids.ID{launched.Job}})
	b.by(anAdmin, b.ids.New(), command.ForgetDeletedRunsPayload{Before: 1 << 40})
	if trail := b.trail(); len(trail) != told {
		t.Errorf("that all is gone is told: %+v", trail[told:])
	}
}

// lives counts the births and deaths of each key in the trail.
func (b *bench) lives() (births, deaths map[string]int) {
	b.t.Helper()
	births, deaths = map[string]int{}, map[string]int{}
	b.view().EachAudit(func(e *state.AuditEntry) bool {
		for _, c := range e.Changes {
			switch {
			case c.Table == "keys" && c.Before == "":
				births[c.Record]++
			case c.Table == "keys" && c.After == "":
				deaths[c.Record]++
			}
		}
		return true
	})
	return births, deaths
}

// Each key's birth and death is in the trail, however many a command ends.
func TestEveryDeathOfAKeyIsTold(t *testing.T) {
	check := func(b *bench, keys int) {
		t.Helper()
		births, deaths := b.lives()
		if d := cmp.Diff(births, deaths); d != "" || len(births) != keys {
			t.Errorf("%d keys, births (-) and deaths: %s", len(births), d)
		}
	}
	b := newBench(t)
	mint := func(count int) {
		for range count {
			b.mint("k")
		}
	}
	mint(100)
	d := command.Deletion{Customer: "a", Operation: command.OpRemoveCustomer}
	b.must(command.PreviewDeletePayload{Deletion: d, Token: "t"})
	before := len(b.trail())
	b.by(anAdmin, b.ids.New(), command.RemoveCustomerPayload{Deletion: d, Token: "t", By: "root"})
	check(b, 100)
	if entries := len(b.trail()) - before; entries > 8 {
		t.Errorf("%d entries", entries)
	}

	// A restore ends the keys made since, and those that were revoked stay so.
	b = newBench(t)
	mint(1)
	backup, was := written(t, b.m.Snapshot()), b.view().Keys("a")[0]
	mint(100)
	owners := map[string]string{}
	for n := range 40 {
		id, customer := b.ids.New(), fmt.Sprint("other", n%2)
		owners[id.String()] = customer
		if n < 2 {
			b.must(command.OpenCustomerPayload{Customer: customer, Entry: b.ids.New()})
		}
		b.must(command.MintKeyPayload{ID: id, Customer: customer, Prefix: id.String()[17:],
			Scope: model.ScopeUser})
	}
	b.must(command.RevokeKeyPayload{Customer: "a", ID: was.ID})
	restore := func(file string, revive bool) {
		t.Helper()
		restored := New()
		if err := restored.Restore(strings.NewReader(file)); err != nil {
			t.Fatal(err)
		}
		if _, err := restored.Store().Succeed(b.m.Store(), state.Restoration{Actor: anAdmin,
			Generation: b.ids.New(), ReviveKeys: revive}); err != nil {
			t.Fatal(err)
		}
		b.m = restored
	}
	today := written(t, b.m.Snapshot())
	restore(backup, false)
	births, deaths := b.lives()
	for key := range births {
		if deaths[key] != 1 {
			t.Errorf("the death of key %s is told %d times", key, deaths[key])
		}
	}
	b.view().EachAudit(func(e *state.AuditEntry) bool {
		for _, change := range e.Changes {
			if of := owners[change.Record]; of != "" && of != e.Customer {
				t.Errorf("the death of %s, a key of %s, is told of %s", change.Record, of, e.Customer)
			}
		}
		return true
	})
	if len(births) != 101+len(owners) {
		t.Errorf("%d births", len(births))
	}
	// Another one brings them back.
	restore(today, false)
	births, _ = b.lives()
	for _, key := range b.view().Keys("a") {
		if births[key.ID.String()] != 2 {
			t.Errorf("key %s is back, and was born %d times", key.ID, births[key.ID.String()])
		}
	}
	restore(backup, true)
	if births, _ := b.lives(); b.view().Key(was.ID) == nil || births[was.ID.String()] != 2 {
		t.Errorf("a key that is valid again was born %d times", births[was.ID.String()])
	}
}

// fillTrail makes so many entries wait for the archive.
func (b *bench) fillTrail(entries uint32) {
	b.t.Helper()
	b.index++
	err := b.m.Store().Update(b.index, b.now, func(tx *state.Tx) error {
		for tx.AuditHead().Waiting < entries {
			tx.AuditEvent("x")
		}
		return nil
	})
	if err != nil {
		b.t.Fatal(err)
	}
}

// failMinutes has so many addresses fail to sign in, in each of some minutes.
func (b *bench) failMinutes(minutes, addresses int) {
	b.t.Helper()
	for range minutes {
		for n := range addresses {
			fails := *aliceFails
			fails.Address = fmt.Sprint("10.1.", n/256, ".", n%256)
			noted := b.by(&fails, b.ids.New(), command.NoteSignInPayload{Failed: true})
			if noted.Err != nil {
				b.t.Fatal(noted.Err)
			}
		}
		b.now += 60_000
		b.must(command.TickPayload{})
		b.must(command.TickPayload{})
	}
}

// TestStrangersDoNotFillTheTrail: while the archive lags, failed sign-ins take a quarter of the
// trail's room. So strangers stop no customer, and none of their attempts is left untold.
func TestStrangersDoNotFillTheTrail(t *testing.T) {
	for before, want := range map[uint32]uint32{
		state.MaxAuditWaiting/4 - 1:   1_002, // a minute by address, and two summed up
		state.MaxAuditWaiting - 1_500: 3,
	} {
		b := newBench(t)
		b.now = 30_000_000 * 60_000
		b.fillTrail(before)
		b.failMinutes(3, 1_000)
		if made := b.view().AuditHead().Waiting - before; made != want {
			t.Errorf("beside %d entries, %d were made, want %d", before, made, want)
		}
		told := uint32(0)
		b.view().EachAudit(func(e *state.AuditEntry) bool { told += e.Count; return true })
		if told != 3_000 {
			t.Errorf("%d failures are told of 3,000", told)
		}
		if r := b.by(aCustomer, b.ids.New(), command.NoteSignInPayload{Action: "sign-in"}); r.Err !=
			nil {
			t.Errorf("beside %d entries a customer's sign-in: %v", before, r.Err)
		}
	}
}

// While the archive lags, customers make no entries beyond the bound, so that the state does not
// fill. Revoking still works, and so does everything for admins.
func TestCustomersWaitForTheTrailsArchive(t *testing.T) {
	const ceiling = state.MaxAuditWaiting + 10
	b := consents(t)
	b.must(adding(1))
	b.must(command.MintKeyPayload{ID: ids.ID{1}, Customer: "a", Prefix: "1"})
	b.must(command.HandLetterPayload{ID: ids.ID{7}, Account: ann.ID})
	b.must(asking(1))
	group, _ := b.members("g", 0)
	share := command.ShareGroupPayload{Customer: "a", Group: group, Emails: []string{"x@x.test"}}
	b.must(share)
	share.Emails = []string{"y@x.test"}
	newcomer := ann
	newcomer.ID, newcomer.Email, newcomer.Customer = ids.ID{8}, "b@x.test", "bob"
	for name, by := range map[string]*state.Actor{"nobody": nil, "a customer": aCustomer,
		"an admin": anAdmin} {
		full := *b
		full.m = New()
		if err := full.m.Restore(strings.NewReader(written(t, b.m.Snapshot()))); err != nil {
			t.Fatal(err)
		}
		full.fillTrail(state.MaxAuditWaiting)
		for _, payload := range []command.Payload{
			command.MintKeyPayload{ID: ids.ID{2}, Customer: "a", Prefix: "2"},
			command.SetPasswordPayload{Account: ann.ID, Was: ann.Password, Password: "p9",
				Keep: state.Hash{1}},
			command.PutLetterPayload{ID: ids.ID{9}, Email: ann.Email},
			command.NoteSignInPayload{Action: "sign-in"},
			share, newcomer, adding(2), opening(2), using(1, 10, 0), asking(2),
		} {
			before := full.view().AuditHead().Waiting
			err := full.by(by, full.ids.New(), payload).Err
			if by != anAdmin && fault.CodeOf(err) != fault.Unavailable ||
				by != anAdmin && full.view().AuditHead().Waiting != before {
				t.Errorf("%T by %s: %v", payload, name, err)
			}
			if by == anAdmin && err != nil && fault.CodeOf(err) != fault.Unauthorized {
				t.Errorf("%T by %s: %v", payload, name, err) // its new password ended the rest
			}
		}
		if by == anAdmin {
			continue
		}
		full.failMinutes(3, 1_001)
		head, newest := full.view().AuditHead(), (*state.AuditEntry)(nil)
		full.view().AuditFrom(full.view().Ancestry(full.index)[0].Generation, head.Number,
			func(e *state.AuditEntry) bool { newest = e; return false })
		if newest == nil || newest.Count != 1_001 || newest.Actor.Address != "" {
			t.Errorf("the failures of a minute: %+v", newest)
		}
		for _, payload := range []command.Payload{redeeming(1),
			command.UseLetterPayload{Letter: ids.ID{7}, Account: ann.ID, Password: "p2"},
			command.EndSessionsPayload{Account: ann.ID},
			command.RemovePasskeyPayload{Account: ann.ID, Passkey: ids.ID{1}},
			command.RevokeSharePayload{Customer: "a", Group: group, Email: "x@x.test"},
			command.RevokeKeyPayload{Customer: "a", ID: ids.ID{1}},
		} {
			if err := full.by(by, full.ids.New(), payload).Err; err != nil {
				t.Errorf("%T by %s: %v", payload, name, err)
			}
		}
		if waiting := full.view().AuditHead().Waiting; waiting > ceiling {
			t.Errorf("%d entries wait", waiting)
		}
	}
}
