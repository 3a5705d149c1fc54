package fsm

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
)

// told returns a customer's notices, newest first.
func told(v *state.View, customer string) (all []*state.Notice) {
	v.Notices(customer, func(n *state.Notice) bool { all = append(all, n); return true })
	return all
}

func (b *bench) mint(name string) ids.ID {
	b.t.Helper()
	id := b.ids.New()
	b.must(command.MintKeyPayload{ID: id, Customer: "a", Prefix: id.String()[17:], Name: name,
		Scope: model.ScopeUser})
	return id
}

func (b *bench) product(name string) ids.ID {
	b.t.Helper()
	group, scraper := b.ids.New(), b.ids.New()
	b.must(command.PutGroupPayload{Create: true, ID: group, Customer: "a", Name: name})
	b.must(command.PutScraperPayload{Create: true, ID: scraper, Customer: "a", Group: group,
		Spec: model.Scraper{Name: name, Type: model.SingleProduct}})
	return scraper
}

// run launches a scraper on links, and settles some with the given outcomes.
func (b *bench) run(scraper ids.ID, links uint32, outcomes ...model.Outcome) ids.ID {
	b.t.Helper()
	launched := b.must(command.LaunchRunPayload{Job: b.ids.New(), Entry: b.ids.New(),
		Customer: "a", Scraper: scraper, List: b.ids.New(), Links: links,
		Tiers: model.TiersOf(model.Plain)}).(command.Launched)
	for seq, outcome := range outcomes {
		b.must(command.ExtendWindowPayload{Runs: []command.WindowRun{{Job: launched.Job,
			Seqs: []uint32{uint32(seq)}}}})
		receipt := model.Receipt{Job: launched.Job, Unit: model.Unit{Seq: uint32(seq)},
			Outcome: outcome, Last: true}
		if outcome == model.Delivered {
			receipt.PriceRow, receipt.Quantity, receipt.Items = "tier:plain", 1, 3
		}
		b.must(command.SettlePayload{Receipts: []model.Receipt{receipt}})
	}
	return launched.Job
}

func TestEndedRunsAreTold(t *testing.T) {
	b := newBench(t)
	scraper := b.product("Shop")
	good := b.run(scraper, 2, model.Delivered, model.Errored)
	b.now = 7_000
	b.must(command.CloseRunPayload{Job: good})
	b.must(command.CloseRunPayload{Job: good})
	bad := b.run(scraper, 1, model.Errored)
	b.must(command.CloseRunPayload{Job: bad})
	stopped := b.run(scraper, 1)
	b.must(command.StopRunPayload{Customer: "a", Job: stopped})
	b.must(command.CloseRunPayload{Job: stopped})
	all := told(b.view(), "a")
	if len(all) != 2 {
		t.Fatalf("%d notices", len(all))
	}
	if n := all[0]; n.Event != model.RunFailed || n.Subject != bad || n.Errors != 1 ||
		n.Message == "" {
		t.Errorf("of the failed run: %+v", n)
	}
	if n := all[1]; n.Event != model.RunCompleted || n.Subject != good || n.Name != "Shop" ||
		n.Scraper != scraper || n.Pages != 2 || n.Items != 3 || n.Errors != 1 || n.At != 7_000 ||
		n.Read {
		t.Errorf("of the complete run: %+v", n)
	}
	if len(told(b.view(), "b")) != 0 {
		t.Error("another customer is told")
	}
}

// TestThreshold: a customer's own threshold applies from the next crossing on.
func TestThreshold(t *testing.T) {
	b := newBench(t)
	adjust := func(amount int64) {
		b.must(command.AdjustWalletPayload{Customer: "a", Entry: b.ids.New(), Amount: amount})
	}
	put := func(threshold int64) {
		t.Helper()
		for range 2 { // a repeat changes nothing
			w := b.must(command.PutThresholdPayload{Customer: "a",
				Threshold: threshold}).(state.Wallet)
			if stands := b.view().Wallet("a"); w != *stands || w.Threshold != threshold {
				t.Fatalf("%+v, and %+v stands", w, stands)
			}
		}
	}
	holds := func(want int) {
		t.Helper()
		if got := len(told(b.view(), "a")); got != want {
			t.Fatalf("%d notices, want %d", got, want)
		}
	}
	adjust(state.LowBalanceMicros)
	put(2 * state.LowBalanceMicros) // the customer sees the balance when setting it
	adjust(-1)
	holds(0)
	put(0)
	adjust(-state.LowBalanceMicros + 1)
	holds(0)
	adjust(-1)
	holds(1)
	put(-state.LowBalanceMicros)
	put(0)
	adjust(-1)
	holds(1)
	r := b.do(command.PutThresholdPayload{Customer: "nobody", Threshold: 1})
	if fault.CodeOf(r.Err) != fault.Unauthorized || b.view().Wallet("nobody") != nil {
		t.Errorf("of nobody: %v", r.Err)
	}
}

// TestMoneyIsToldOf: a wallet that falls below its threshold is reported, and a run that it stops.
func TestMoneyIsToldOf(t *testing.T) {
	b := newBench(t)
	adjust := func(amount int64) {
		b.must(command.AdjustWalletPayload{Customer: "a", Entry: b.ids.New(), Amount: amount})
	}
	events := func() (all []model.Event) {
		for _, n := range told(b.view(), "a") {
			all = append(all, n.Event)
		}
		return all
	}
	adjust(-1)
	adjust(state.LowBalanceMicros)
	if got := events(); len(got) != 0 {
		t.Fatalf("who was low before is told %v", got)
	}
	adjust(1)
	adjust(-1)
	adjust(-1)
	if got := fmt.Sprint(events()); got != "[WALLET_LOW_BALANCE]" {
		t.Fatalf("told %s", got)
	}
	if n := told(b.view(), "a")[0]; n.Micros != state.LowBalanceMicros-1 {
		t.Errorf("of the balance: %+v", n)
	}
	adjust(2)
	adjust(-state.LowBalanceMicros)
	if got := fmt.Sprint(events()); got != "[WALLET_LOW_BALANCE WALLET_LOW_BALANCE]" {
		t.Fatalf("told %s", got)
	}
	job := b.run(b.product("Shop"), 9, model.Delivered, model.Delivered, model.Delivered,
		model.Delivered, model.Delivered) // all free requests
	for range 2 {
		b.must(command.ExtendWindowPayload{Runs: []command.WindowRun{{Job: job,
			Seqs: []uint32{5, 6}}}})
	}
	b.must(command.CloseRunPayload{Job: job})
	if n := told(b.view(), "a"); len(n) != 3 || n[0].Event != model.RunStoppedBalance ||
		n[0].Subject != job || n[0].Pages != 5 {
		t.Errorf("of the stopped run: %+v", n[0])
	}
}

// TestTopUpsAreTold: each payment is reported once, however often the provider reports it.
func TestTopUpsAreTold(t *testing.T) {
	b := newBench(t)
	for _, session := range []string{"paid", "failed", "left"} {
		b.open(session)
	}
	for range 2 {
		b.pay("paid", 10_000_000)
		b.must(command.EndTopUpPayload{Session: "failed", Failed: true})
		b.must(command.EndTopUpPayload{Session: "left"})
		b.pay("in another currency", 0)
	}
	all := told(b.view(), "a")
	if len(all) != 2 || all[0].Event != model.TopUpFailed || all[0].Micros == 0 ||
		all[1].Event != model.TopUpApplied || all[1].Micros != 10_000_000 {
		t.Errorf("told: %+v", all)
	}
}

func TestPreferencesOfNotices(t *testing.T) {
	b := newBench(t)
	prefer := func(event model.Event, how model.NoticePreference) state.Inbox {
		return b.must(command.PreferNoticesPayload{Customer: "a",
			Set: []state.Preference{{Event: event, How: how}}}).(state.Inbox)
	}
	b.refused(command.PreferNoticesPayload{Customer: "nobody"}, fault.Unauthorized)
	var many []state.Preference
	for n := range maxPreferences + 1 {
		many = append(many, state.Preference{Event: model.Event(fmt.Sprint(n))})
	}
	b.refused(command.PreferNoticesPayload{Customer: "a", Set: many}, fault.LimitReached)
	if inbox := b.view().Inbox("a"); len(inbox.Preferences) != 0 ||
		inbox.Preference(model.APIKeyCreated) != model.BothWays ||
		inbox.Preference(model.RunCompleted) != model.InApp {
		t.Errorf("without a preference: %+v", inbox)
	}
	prefer(model.APIKeyCreated, model.NotAtAll)
	prefer(model.RunCompleted, model.ByEmail)
	inbox := prefer(model.RunFailed, model.InApp)
	if len(inbox.Preferences) != 3 || inbox.Preference(model.APIKeyCreated) != model.NotAtAll ||
		inbox.Preference(model.RunFailed) != model.InApp {
		t.Errorf("set: %+v", inbox)
	}
	b.mint("silent")
	prefer(model.APIKeyCreated, model.InApp)
	b.mint("loud")
	if all := told(b.view(), "a"); len(all) != 1 || all[0].Name != "loud" {
		t.Errorf("told %+v", all)
	}
}

func TestNoticesAreRead(t *testing.T) {
	b := newBench(t)
	for n := range 3 {
		b.mint(fmt.Sprint(n))
	}
	newest := told(b.view(), "a")[0].ID
	b.refused(command.ReadNoticesPayload{Customer: "a", ID: ids.ID{9}}, fault.NotFound)
	b.refused(command.ReadNoticesPayload{Customer: "b", ID: newest}, fault.NotFound)
	read := func(p command.ReadNoticesPayload, want uint32) {
		t.Helper()
		p.Customer = "a"
		for range 2 {
			if got := b.must(p).(state.Inbox); got.Unread != want || got.Notices != 3 {
				t.Fatalf("%+v, want %d unread", got, want)
			}
		}
	}
	read(command.ReadNoticesPayload{ID: newest}, 2)
	read(command.ReadNoticesPayload{ID: newest, Unread: true}, 3)
	read(command.ReadNoticesPayload{}, 0)
	if inbox := b.must(command.ReadNoticesPayload{Customer: "b"}).(state.Inbox); inbox.Unread != 0 {
		t.Errorf("without any: %+v", inbox)
	}
}

func TestNoticesGoAfterNinetyDays(t *testing.T) {
	b := newBench(t)
	b.mint("old")
	b.now += 1
	b.mint("young")
	b.now += state.NoticeKeptMillis - 1
	b.must(command.TickPayload{})
	if all := told(b.view(), "a"); len(all) != 1 || all[0].Name != "young" {
		t.Errorf("left: %+v", all)
	}
	if inbox := b.view().Inbox("a"); inbox.Notices != 1 || inbox.Unread != 1 {
		t.Errorf("counted: %+v", inbox)
	}
}

// TestNoticesFold: at the bound the newest notice counts those without room, until some are read.
func TestNoticesFold(t *testing.T) {
	b := newBench(t)
	n := 0
	tell := func(more int) {
		t.Helper()
		for range more {
			n++
			if err := b.m.Store().Update(b.index, b.now, func(tx *state.Tx) error {
				notify(tx, state.Notice{ID: ids.ID{11: byte(n), 10: byte(n >> 8), 0: 1},
					Customer: "a", Event: model.RunFailed, Name: fmt.Sprint(n)})
				return nil
			}); err != nil {
				t.Fatal(err)
			}
			b.index++
		}
	}
	holds := func(notices, unread int, newest string, folded uint64) {
		t.Helper()
		all, inbox := told(b.view(), "a"), b.view().Inbox("a")
		if len(all) != notices || inbox.Notices != uint32(notices) ||
			inbox.Unread != uint32(unread) || all[0].Name != newest || all[0].Count != folded {
			t.Fatalf("%d notices, %+v, the newest %+v", len(all), inbox, all[0])
		}
	}
	tell(maxNotices)
	holds(maxNotices, maxNotices, fmt.Sprint(maxNotices), 0)
	tell(1)
	holds(maxNotices+1, maxNotices+1, "", 1)
	fold := told(b.view(), "a")[0]
	if fold.Event != model.MoreNotices {
		t.Errorf("the fold: %+v", fold)
	}
	tell(41)
	holds(maxNotices+1, maxNotices+1, "", 42)
	if again := told(b.view(), "a")[0]; again.ID != fold.ID {
		t.Error("the fold has another id")
	}
	all := told(b.view(), "a")
	for _, read := range all[len(all)-2:] {
		b.must(command.ReadNoticesPayload{Customer: "a", ID: read.ID})
	}
	tell(1) // replaces the oldest
	holds(maxNotices+1, maxNotices, fmt.Sprint(n), 0)
	tell(1)
	b.must(command.ReadNoticesPayload{Customer: "a", ID: fold.ID})
	tell(1)
	b.must(command.ReadNoticesPayload{Customer: "a"})
	tell(1)
	holds(maxNotices+1, 1, fmt.Sprint(n), 0)
}

// TestInboxesCountTheirNotices compares the counts with the notices, over any order of events.
func TestInboxesCountTheirNotices(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, index, now := state.NewStore(), uint64(0), int64(1)
		update := func(apply func(tx *state.Tx)) {
			index++
			if err := s.Update(index, now, func(tx *state.Tx) error {
				apply(tx)
				return nil
			}); err != nil {
				t.Fatal(err)
			}
		}
		update(func(tx *state.Tx) {
			tx.PutCluster(&state.Cluster{Version: command.Newest})
			inbox := state.Inbox{Customer: "a"}
			for n := range maxNotices - 2 { // close to the bound
				notice := state.Notice{ID: ids.ID{1, 10: byte(n >> 8), 11: byte(n)},
					Customer: "a", At: 1, Read: n%2 == 0 && rapid.Bool().Draw(t, "read")}
				tx.PutNotice(&notice)
				inbox.Add(&notice)
			}
			tx.PutInbox(inbox)
		})
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			now += rapid.Int64Range(0, state.NoticeKeptMillis/20).Draw(t, "later")
			var all []*state.Notice
			all = told(s.View(), "a")
			update(func(tx *state.Tx) {
				switch step := rapid.IntRange(0, 9).Draw(t, "step"); {
				case step == 0:
					expireNotices(tx)
				case step == 1 && len(all) > 0:
					n := all[rapid.IntRange(0, len(all)-1).Draw(t, "which")]
					_, _ = readNotices(tx, command.ReadNoticesPayload{Customer: "a", ID: n.ID,
						Unread: rapid.Bool().Draw(t, "unread")})
				case step == 2:
					_, _ = readNotices(tx, command.ReadNoticesPayload{Customer: "a"})
				default:
					notify(tx, state.Notice{ID: ids.ID{2, 10: byte(index >> 8), 11: byte(index)},
						Customer: "a", Event: model.RunCompleted})
				}
			})
			inbox, unread := s.View().Inbox("a"), uint32(0)
			all = told(s.View(), "a")
			folds := 0
			for _, n := range all {
				if !n.Read {
					unread++
				}
				if n.ID == inbox.Fold {
					folds++
				}
			}
			if int(inbox.Notices) != len(all) || inbox.Unread != unread ||
				len(all) > maxNotices+1 || (folds == 0) != inbox.Fold.IsZero() {
				t.Fatalf("%+v, and there are %d, %d of them unread", inbox, len(all), unread)
			}
		}
	})
}
