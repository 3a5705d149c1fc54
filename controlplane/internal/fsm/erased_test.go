package fsm

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fxamacker/cbor/v2"

	"shoal.dev/shoal/controlplane/internal/codec"
	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
)

// leaver is a customer with a record in every table.
const leaver = "the leaver"

// fates reads from the architecture what happens to each table's records once their customer is
// removed.
func fates(t *testing.T) map[string]string {
	t.Helper()
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "architecture.md"))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for line := range strings.Lines(string(page)) {
		if cells := strings.Split(line, "|"); len(cells) == 7 && strings.Contains(cells[1], "`") {
			for name := range strings.SplitSeq(cells[1], ",") {
				all[strings.Trim(name, " `")] = strings.TrimSpace(cells[4])
			}
		}
	}
	return all
}

// marked counts each table's records that contain one of some marks.
func (b *bench) marked(marks ...[]byte) map[string]int {
	b.t.Helper()
	var snapshot bytes.Buffer
	if err := b.m.Snapshot().Write(&snapshot); err != nil {
		b.t.Fatal(err)
	}
	_, mode := codec.New().Modes()
	dec := mode.NewDecoder(&snapshot)
	var record cbor.RawMessage
	if err := dec.Decode(&record); err != nil { // the header
		b.t.Fatal(err)
	}
	found := map[string]int{}
	var section struct {
		Name  string `cbor:"1,keyasint"`
		Count int    `cbor:"2,keyasint"`
	}
	for section.Name != "runs" {
		if err := dec.Decode(&section); err != nil {
			b.t.Fatal(err)
		}
		for range section.Count {
			if err := dec.Decode(&record); err != nil {
				b.t.Fatal(err)
			}
			for _, mark := range marks {
				if bytes.Contains(record, mark) {
					found[section.Name]++
					break
				}
			}
		}
	}
	return found
}

// settle makes a customer with a record in every table. It returns its run, and the marks of its
// records.
func (b *bench) settle() (job ids.ID, marks [][]byte) {
	b.must(command.SignUpPayload{Customer: leaver, Email: "ann@shop.test", Firstname: "Ann",
		Lastname: "Smith", Entry: b.ids.New()})
	b.must(command.AdjustWalletPayload{Customer: leaver, Entry: b.ids.New(), Amount: 1e9})
	hook, key, account := ids.ID{'h', 'o', 'o', 'k'}, ids.ID{'a', ' ', 'k', 'e', 'y'},
		ids.ID{'p', 'e', 'r', 's', 'o', 'n'}
	b.must(command.PutWebhookPayload{ID: hook, Customer: leaver, URL: "https://a.test/",
		Events: []model.Event{model.APIKeyCreated}, Secret: hook[:]})
	b.must(command.MintKeyPayload{ID: key, Customer: leaver, Prefix: "leaver",
		Hash: [32]byte{7}, Scope: model.ScopeUser})
	b.schema(leaver, ids.ID{}, 1, "{}")
	b.must(command.CreateAccountPayload{ID: account, Email: "ann@shop.test", Customer: leaver,
		Password: "hash", Entry: b.ids.New()})
	b.must(command.OpenSessionPayload{Account: account, Password: "hash",
		Hash: state.Hash{9}})
	b.must(command.IssueCodePayload{Hash: state.Hash{9}, Session: state.Hash{9}})
	b.must(command.RedeemCodePayload{Hash: state.Hash{9}, Grant: ids.ID{9}})
	b.must(command.PutLetterPayload{ID: b.ids.New(), Email: "ann@shop.test"})
	b.must(command.AddPasskeyPayload{ID: b.ids.New(), Account: account, Password: "hash",
		Credential: []byte("key")})
	group := ids.ID{'g', 'r', 'o', 'u', 'p'}
	b.must(command.PutGroupPayload{Create: true, ID: group, Customer: leaver, Name: "g"})
	b.must(command.PutCategoryPayload{ID: b.ids.New(), Customer: leaver, Group: group, Name: "c",
		Filters: []byte("{}")})
	spec := model.Scraper{Name: "s", Type: model.SingleProduct, Schedule: "0 5 * * *",
		ItemsConfig: []model.Field{{Name: "leaver's field", Selector: "h1", Kind: model.Text}}}
	scraper := b.must(command.PutScraperPayload{Create: true, ID: ids.ID{'s', 'c', 'r', 'a'},
		Customer: leaver, Group: group, Spec: spec}).(state.Scraper)
	job = b.ids.New()
	b.must(command.LaunchRunPayload{Job: job, Entry: b.ids.New(), Customer: leaver,
		Scraper: scraper.ID, List: b.ids.New(), Links: 1, Tiers: model.TiersOf(model.Plain)})
	spec.ItemsConfig[0].Selector = "h2" // so that its run uses the former recipe
	b.must(command.PutScraperPayload{ID: scraper.ID, Customer: leaver, Group: group, Spec: spec})
	b.must(command.OpenTopUpPayload{Session: "session", Customer: leaver, Amount: 5,
		Expires: 1e15})
	b.must(command.PayTopUpPayload{Session: "session", Customer: leaver, Entry: b.ids.New(),
		Amount: 5, Payment: "payment"})
	b.must(command.ReverseTopUpPayload{ID: "reversal", Payment: "payment", Amount: 1,
		Entry: b.ids.New()})
	b.must(command.PreviewDeletePayload{Token: "old", Deletion: command.Deletion{Customer: leaver,
		Operation: command.OpDeleteGroup, Target: group}})
	b.must(command.EnqueueWorkPayload{ID: b.ids.New(), Kind: "launch", Customer: leaver})
	b.index++
	err := b.m.Store().Update(b.index, b.now, func(tx *state.Tx) error {
		tx.PutShare(&state.Share{Group: group, Email: "bob@shop.test", Owner: leaver})
		tx.PutSubscription(&state.Subscription{Customer: leaver})
		tx.PutInvoice(&state.Invoice{ID: "invoice", Customer: leaver})
		tx.PutFeedback(&state.Feedback{ID: b.ids.New(), Customer: leaver, Text: "I am Ann"})
		tx.PutExport(&state.Export{ID: b.ids.New(), Customer: leaver, ExpiresAt: 1e15})
		tx.PutHarvest(&state.Harvest{ID: b.ids.New(), Customer: leaver})
		tx.PutImport(&state.Import{Job: b.ids.New(), Customer: leaver, Ended: 1})
		tx.PutSite(&state.Site{ID: b.ids.New(), Customer: leaver, Scraper: b.ids.New()})
		tx.PutTicket(&state.Ticket{Hash: state.Hash{1}, Customer: leaver, Expires: 1e15})
		tx.PutNotice(&state.Notice{ID: b.ids.New(), Customer: leaver, Made: tx.Index})
		tx.PutMail(&state.Mail{ID: b.ids.New(), Customer: leaver})
		tx.PutInbox(state.Inbox{Customer: leaver, Notices: 2})
		tx.PutDaily(&state.Daily{Customer: leaver, Day: tx.Now/dayMillis + 9})
		tx.PutResult(&state.StoredResult{Command: key, Expires: 1e15})
		addClaim(tx, tx.NewClaim(leaver, "op", "key"))
		tx.PutUndone(&state.Undone{Job: b.ids.New(), Customer: leaver})
		tx.PutRevoked(&state.Revoked{ID: key})
		tx.PutRemoval(&state.Removal{Group: b.ids.New(), Scraper: b.ids.New(), Customer: leaver})
		tx.PutHeldRun(&state.HeldRun{Job: b.ids.New(), Customer: leaver})
		tx.PutDeletedRun(&state.DeletedRun{Job: b.ids.New(), Customer: leaver})
		tx.PutDeletedGroup(&state.DeletedGroup{Group: b.ids.New(), Customer: leaver, Rows: true})
		return nil
	})
	if err != nil {
		b.t.Fatal(err)
	}
	return job, [][]byte{[]byte(leaver), key[:], account[:], scraper.ID[:], group[:], hook[:],
		[]byte("leaver's field"), []byte("payment"), []byte("ann@shop.test")}
}

// TestRemovalReachesEveryTable: a removed customer leaves what the architecture says, and nothing
// else. A new table needs a record here.
func TestRemovalReachesEveryTable(t *testing.T) {
	b := newBench(t)
	b.now = 1_000_000
	job, marks := b.settle()
	before := b.marked(marks...)
	stated := fates(t)
	for table, fate := range stated {
		if fate != "–" && before[table] == 0 && table != "workers" {
			t.Errorf("table %s has nothing of the customer: let settle put something there", table)
		}
	}
	d := command.Deletion{Customer: leaver, Operation: command.OpRemoveCustomer}
	b.must(command.PreviewDeletePayload{Deletion: d, Token: "t"})
	b.must(command.RemoveCustomerPayload{Deletion: d, Token: "t", By: "root"})
	b.must(command.CloseRunPayload{Job: job})
	for b.view().Leaves(leaver) {
		b.must(command.EraseCustomerPayload{Customer: leaver})
	}
	for _, deleted := range b.view().DeletedGroupsOf(leaver) {
		b.must(command.DeleteMembersPayload{Group: deleted.Group})
		b.must(command.ForgetGroupPayload{Group: deleted.Group})
	}
	for _, h := range b.view().HarvestsFor(leaver) {
		b.must(command.ForgetHarvestsPayload{Harvests: []ids.ID{h.ID}})
	}
	for _, r := range b.view().RemovalsOf(leaver) {
		b.must(command.ForgetRemovalsPayload{Removals: []command.RemovalRef{{Group: r.Group,
			Scraper: r.Scraper}}})
	}
	b.must(command.EraseCustomerPayload{Customer: leaver, Rows: true})
	if b.view().Customer(leaver).ErasedAt != 0 {
		t.Error("the runs of its uploads were not sealed, and it is erased")
	}
	for _, i := range b.view().Imports(leaver) {
		b.must(command.ForgetImportsPayload{Jobs: []ids.ID{i.Job}})
	}
	b.must(command.EraseCustomerPayload{Customer: leaver, Rows: true})
	if b.view().Customer(leaver).ErasedAt == 0 {
		t.Fatal("the removal is not over")
	}
	b.must(command.DropArchivedPayload{Upto: b.index, Keep: 10,
		Generation: b.view().Ancestry(b.index)[0].Generation})
	after := b.marked(marks...)
	for table, fate := range stated {
		switch fate {
		case "goes", "archived":
			if after[table] > 0 {
				t.Errorf("table %s has %d records of a removed customer", table, after[table])
			}
		case "–", "stays", "by age":
		default:
			t.Errorf("the architecture says %q of table %s", fate, table)
		}
	}
	for table := range after {
		if stated[table] == "" && table != "runs" {
			t.Errorf("the architecture does not know table %s", table)
		}
	}
	personal := b.marked([]byte("ann@shop.test"), []byte("Ann"), []byte("Smith"))
	delete(personal, "results") // kept for minutes only
	for table, count := range personal {
		t.Errorf("table %s says in %d records who the customer was", table, count)
	}
}

// TestRemovedCustomersStayAway: no late command, and none by others with the reference, makes
// anything for a removed customer.
func TestRemovedCustomersStayAway(t *testing.T) {
	b := newBench(t)
	d := command.Deletion{Customer: "a", Operation: command.OpRemoveCustomer}
	b.must(command.PreviewDeletePayload{Deletion: d, Token: "t"})
	b.must(command.RemoveCustomerPayload{Deletion: d, Token: "t", By: "root"})
	b.must(command.EraseCustomerPayload{Customer: "a", Rows: true})
	b.must(command.EraseCustomerPayload{Customer: "a", Rows: true})
	if b.view().Customer("a").ErasedAt == 0 {
		t.Fatal("the removal is not over")
	}
	removed := b.view().Customer("a").RemovedAt
	late := func(payload command.Payload) {
		t.Helper()
		data, err := b.m.EncodeBy(&state.Actor{Subject: "a", Customer: "a"}, b.ids.New(), b.now,
			payload, &command.Call{Customer: "a", Operation: "op", Key: b.ids.New().String()})
		if err != nil {
			t.Fatal(err)
		}
		b.index++
		if r := b.m.Apply(b.index, data); fault.CodeOf(r.Err) != fault.CustomerBlocked {
			t.Errorf("%T: %v", payload, r.Err)
		}
	}
	late(command.SignUpPayload{Customer: "a", Email: "a@shop.test", Entry: b.ids.New()})
	late(command.PutGroupPayload{Create: true, ID: b.ids.New(), Customer: "a", Name: "g"})
	late(command.ChangeInfoPayload{Customer: "a", Set: []state.Info{{Key: "k", Value: "v"}}})
	late(command.PutThresholdPayload{Customer: "a", Threshold: 5})
	b.refused(command.MintKeyPayload{ID: b.ids.New(), Customer: "a", Prefix: "p"},
		fault.CustomerBlocked)
	b.refused(command.CreateAccountPayload{ID: b.ids.New(), Customer: "a", Email: "x@y.test"},
		fault.CustomerBlocked)
	b.refused(command.EnqueueWorkPayload{ID: b.ids.New(), Customer: "a", Kind: "k"},
		fault.CustomerBlocked)
	b.must(command.OpenCustomerPayload{Customer: "a", Entry: b.ids.New()})
	b.must(command.AdjustWalletPayload{Customer: "a", Entry: b.ids.New(), Amount: -1})
	customer := b.view().Customer("a")
	if b.view().Leaves("a") || customer.RemovedAt != removed || !customer.Blocked() ||
		customer.Claims != 0 {
		t.Errorf("something came of it: %+v", customer)
	}
}
