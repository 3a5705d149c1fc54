package fsm

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/model"
)

// figures returns n figures in order.
func figures(n int) *[]state.RateFigure {
	list := []state.RateFigure{}
	for i := range n {
		list = append(list, state.RateFigure{Class: fmt.Sprintf("c%03d", i), Count: 1, Per: 1_000})
	}
	return &list
}

func of[T any](value T) *T { return &value }

// What is not named stays, a repeat changes nothing, and each bound is exact.
func TestSettings(t *testing.T) {
	b := newBench(t)
	put := func(p command.PutSettingsPayload) state.Settings {
		t.Helper()
		return b.must(p).(state.Settings)
	}
	if s := b.view().Settings(); s.Revision != 0 || s.BillingOff {
		t.Errorf("at first they are %+v", s)
	}
	off := put(command.PutSettingsPayload{By: "root", BillingOff: of(true)})
	if !off.BillingOff || off.Revision != 1 || off.ChangedBy != "root" || off.ChangedAt != b.now {
		t.Errorf("switched off: %+v", off)
	}
	if again := put(command.PutSettingsPayload{By: "eve", BillingOff: of(true)}); again.Revision !=
		1 || again.ChangedBy != "root" {
		t.Errorf("again: %+v", again)
	}
	set := put(command.PutSettingsPayload{Threshold: of(int64(command.MaxThreshold)),
		Rates: figures(command.MaxRateFigures)})
	if !set.BillingOff || set.Revision != 2 || len(set.Rates) != command.MaxRateFigures ||
		*set.Threshold != command.MaxThreshold {
		t.Errorf("the rest: %+v", set)
	}
	for _, days := range []uint32{state.MaxHistoryDays, state.MinHistoryDays, 0} {
		if s := put(command.PutSettingsPayload{HistoryDays: &days}); s.HistoryDays != days ||
			len(s.Rates) != command.MaxRateFigures {
			t.Errorf("%d days of history: %+v", days, s)
		}
	}
	b.must(command.OpenCustomerPayload{Customer: "new", Entry: b.ids.New()})
	if w := b.view().Wallet("new"); w.Threshold != command.MaxThreshold {
		t.Errorf("a new wallet is low below %d", w.Threshold)
	}
	if s := put(command.PutSettingsPayload{Threshold: of(int64(-1)), Rates: figures(0),
		BillingOff: of(false)}); s.Threshold != nil || s.Rates != nil || s.BillingOff {
		t.Errorf("all taken back: %+v", s)
	}
	one := func(f state.RateFigure) *[]state.RateFigure { return &[]state.RateFigure{f} }
	for name, p := range map[string]command.PutSettingsPayload{
		"too many": {Rates: figures(command.MaxRateFigures + 1)},
		"twice":    {Rates: &[]state.RateFigure{(*figures(1))[0], (*figures(1))[0]}},
		"no name":  {Rates: one(state.RateFigure{Count: 1, Per: 1_000})},
		"a long name": {Rates: one(state.RateFigure{Class: strings.Repeat("x", 65), Count: 1,
			Per: 1_000})},
		"none": {CustomerRates: one(state.RateFigure{Class: "run", Count: 0, Per: 1_000})},
		"a great many": {CustomerRates: one(state.RateFigure{Class: "run", Count: 1_000_001,
			Per: 1_000})},
		"too often":   {Rates: one(state.RateFigure{Class: "run", Count: 1, Per: 999})},
		"too rarely":  {Rates: one(state.RateFigure{Class: "run", Count: 1, Per: 86_400_001})},
		"a threshold": {Threshold: of(int64(command.MaxThreshold + 1))},
		"few days":    {HistoryDays: of(uint32(state.MinHistoryDays - 1))},
		"one day":     {HistoryDays: of(uint32(1))},
		"many days":   {HistoryDays: of(uint32(state.MaxHistoryDays + 1))},
	} {
		before := b.view().Settings().Revision
		p.BillingOff = of(true)
		b.refused(p, fault.InvalidRequest)
		if now := b.view().Settings(); now.Revision != before || now.BillingOff {
			t.Errorf("%s: a part of it was done: %+v", name, now)
		}
	}
}

// TestSettingsOfTwoAdmins: who has read older settings changes nothing, so no admin undoes what
// another has just set. A repeat of a change that was made is no change.
func TestSettingsOfTwoAdmins(t *testing.T) {
	b := newBench(t)
	b.must(command.PutSettingsPayload{By: "root", Rates: figures(1)})
	mine := command.PutSettingsPayload{By: "root", Rates: figures(2), Revision: of(uint64(1))}
	for range 2 {
		if s := b.must(mine).(state.Settings); s.Revision != 2 || len(s.Rates) != 2 {
			t.Errorf("mine: %+v", s)
		}
	}
	theirs := command.PutSettingsPayload{By: "eve", Rates: figures(3)}
	for _, revision := range []uint64{0, 1, 3} {
		theirs.Revision = &revision
		b.refused(theirs, fault.SettingsChanged)
	}
	if s := b.view().Settings(); s.Revision != 2 || len(s.Rates) != 2 || s.ChangedBy != "root" {
		t.Errorf("after the refusal: %+v", s)
	}
	theirs.Revision = nil
	if s := b.must(theirs).(state.Settings); s.Revision != 3 || len(s.Rates) != 3 {
		t.Errorf("without a revision: %+v", s)
	}
}

// TestFirstSettingsOfTwoAdmins: two admins have read settings that nobody ever changed. The second
// one changes nothing.
func TestFirstSettingsOfTwoAdmins(t *testing.T) {
	b := newBench(t)
	read := of(b.view().Settings().Revision)
	b.must(command.PutSettingsPayload{By: "root", Rates: figures(2), BillingOff: of(true),
		Revision: read})
	b.refused(command.PutSettingsPayload{By: "eve", Rates: figures(3), BillingOff: of(false),
		Revision: read}, fault.SettingsChanged)
	if s := b.view().Settings(); s.Revision != 1 || len(s.Rates) != 2 || !s.BillingOff {
		t.Errorf("after the refusal: %+v", s)
	}
}

// The trail tells every change of each setting, whoever made it, and no repeat.
func TestTheTrailTellsOfSettings(t *testing.T) {
	b := newBench(t)
	plans := []state.Plan{{Name: state.StarterPlan}}
	changes := []command.PutSettingsPayload{
		{BillingOff: of(true)}, {Threshold: of(int64(0))}, {Threshold: of(int64(-1))},
		{Rates: figures(1)}, {CustomerRates: figures(1)}, {SignUp: of(true)},
		{Uploads: &state.UploadFigures{Heavy: 2}}, {Uploads: &state.UploadFigures{Seconds: 60}},
		{Uploads: &state.UploadFigures{HoldMinutes: 5}},
		{HistoryDays: of(uint32(state.MinHistoryDays))}, {Plans: &plans},
	}
	set := map[string]bool{"By": true, "Revision": true}
	for _, p := range changes {
		members := reflect.ValueOf(p)
		for i := range members.NumField() {
			set[members.Type().Field(i).Name] = set[members.Type().Field(i).Name] ||
				!members.Field(i).IsZero()
		}
		before := b.trail()
		p.By = "root"
		for range 2 {
			b.by(anAdmin, b.ids.New(), p)
		}
		trail := b.trail()
		if len(trail) != len(before)+1 || len(trail[len(before)].Changes) != 1 {
			t.Fatalf("told of %+v: %+v", p, trail[len(before):])
		}
		if c := trail[len(before)].Changes[0]; c.Table != "settings" || c.Before == c.After {
			t.Errorf("told of %+v: %+v", p, c)
		}
	}
	for member, tried := range set {
		if !tried {
			t.Errorf("no change sets %s", member)
		}
	}
	if first := b.trail()[0].Changes[0]; first.Before != "" ||
		first.After != `{"walletBillingEnabled":false}` {
		t.Errorf("told: %+v", first)
	}
}

// While billing is off, a run continues without money, even one that only money can pay for. Its
// pages are counted. When billing is on again, the next run is refused.
func TestBillingIsSwitchedUnderARun(t *testing.T) {
	b := newTrialsWith(t, 5, 1)
	launch := func() (command.LaunchRunPayload, error) {
		p := command.LaunchRunPayload{Job: b.ids.New(), Entry: b.ids.New(), Customer: customer,
			Scraper: b.scraper, List: b.ids.New(), Links: 20, Tiers: model.TiersOf(model.Plain)}
		return p, b.do(p)
	}
	run, err := launch()
	if err != nil { // five free requests
		t.Fatal(err)
	}
	page := func(seq uint32) {
		t.Helper()
		b.must(command.ExtendWindowPayload{Runs: []command.WindowRun{{Job: run.Job,
			Seqs: []uint32{seq}}}})
		b.must(command.SettlePayload{Receipts: []model.Receipt{{Job: run.Job,
			Unit: model.Unit{Seq: seq}, Outcome: model.Delivered, PriceRow: "tier:plain",
			Quantity: 1, Items: 1, Last: true}}})
	}
	for seq := range uint32(5) {
		page(seq)
	}
	b.must(command.PutSettingsPayload{BillingOff: of(true)})
	for seq := range uint32(10) {
		page(5 + seq)
	}
	entry, job := b.view().Entry(run.Entry), b.view().Job(run.Job)
	if job.Delivered != 15 || job.Charged != 0 || job.State != model.Running {
		t.Errorf("the run is %+v", job)
	}
	if l := entry.Lines[0]; len(entry.Lines) != 1 || l.FreePages != 5 || l.Unbilled != 10 ||
		l.Pages != 0 || entry.Amount != 0 {
		t.Errorf("its entry is %+v", entry)
	}
	b.must(command.PutSettingsPayload{BillingOff: of(false)})
	b.must(command.ExtendWindowPayload{Runs: []command.WindowRun{{Job: run.Job,
		Seqs: []uint32{15}}}})
	if job = b.view().Job(run.Job); job.Reason != model.InsufficientBalance {
		t.Errorf("switched on again: %+v", job)
	}
	b.must(command.CloseRunPayload{Job: run.Job})
	if _, err := launch(); fault.CodeOf(err) != fault.WalletInsufficient {
		t.Errorf("without a cent: %v", err)
	}
}

// While billing is off no top-up can be opened. One opened before is credited, since the money was
// taken.
func TestTopUpsWhileBillingIsOff(t *testing.T) {
	b := newBench(t)
	open := func(session string) command.OpenTopUpPayload {
		return command.OpenTopUpPayload{Session: session, Customer: "a", Amount: 5_000_000,
			Expires: 1 << 40}
	}
	b.must(open("cs_1"))
	b.must(command.PutSettingsPayload{BillingOff: of(true)})
	b.refused(open("cs_2"), fault.TopUpNotConfigured)
	b.must(open("cs_1")) // a repeat
	b.must(command.PayTopUpPayload{Session: "cs_1", Payment: "pi_1", Customer: "a",
		Amount: 5_000_000, Entry: b.ids.New()})
	if w := b.view().Wallet("a"); w.Balance() != 5_000_000 {
		t.Errorf("balance %d", w.Balance())
	}
}
