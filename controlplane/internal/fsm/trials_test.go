package fsm

import (
	"testing"

	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
)

// trials is a state machine with a customer, a group and a scraper.
type trials struct {
	*testing.T
	m              *FSM
	ids            ids.Sequence
	index          uint64
	now            int64
	group, scraper ids.ID
}

func newTrials(t *testing.T) *trials { return newTrialsWith(t, 5, 1_000_000) }

// newTrialsWith gives new customers free requests, and the scraper's owner money.
func newTrialsWith(t *testing.T, free, micros int64) *trials {
	b := &trials{T: t, m: New(), now: 1}
	b.must(command.CreateClusterPayload{Version: command.Newest, ID: b.ids.New(), Shards: 1,
		FreeGrant: free, Prices: testPrices})
	b.must(command.OpenCustomerPayload{Customer: customer, Entry: b.ids.New()})
	b.must(command.OpenCustomerPayload{Customer: "other", Entry: b.ids.New()})
	b.must(command.AdjustWalletPayload{Customer: customer, Entry: b.ids.New(), Amount: micros})
	b.group, b.scraper = b.ids.New(), b.ids.New()
	b.must(command.PutGroupPayload{Create: true, ID: b.group, Customer: customer, Name: "g",
		DataTable: "t"})
	b.must(command.PutScraperPayload{Create: true, ID: b.scraper, Customer: customer,
		Group: b.group,
		Spec:  model.Scraper{Name: "s", Type: model.SingleProduct}})
	return b
}

func (b *trials) do(payload command.Payload) error {
	b.Helper()
	return b.apply(payload).Err
}

func (b *trials) apply(payload command.Payload) Result {
	b.Helper()
	data, err := b.m.Encode(b.ids.New(), b.now, payload, nil)
	if err != nil {
		b.Fatal(err)
	}
	b.index++
	return b.m.Apply(b.index, data)
}

func (b *trials) must(payload command.Payload) {
	b.Helper()
	if err := b.do(payload); err != nil {
		b.Fatalf("command %T: %v", payload, err)
	}
}

func (b *trials) view() *state.View { return b.m.Store().View() }

func (b *trials) trial(scraper ids.ID, trial command.Trial) command.LaunchRunPayload {
	trial.Recipe = model.Recipe{Type: model.SingleProduct,
		Fields: []model.Field{{Name: "t", Selector: "h1", Kind: model.Text}}}
	return command.LaunchRunPayload{Job: b.ids.New(), Entry: b.ids.New(), Customer: customer,
		Scraper: scraper, List: b.ids.New(),
		Links: 1, Tiers: model.TiersOf(model.Plain), Trial: &trial}
}

// end settles the only page of a trial, and closes it.
func (b *trials) end(job ids.ID, delivered bool) {
	b.Helper()
	b.must(command.ExtendWindowPayload{Runs: []command.WindowRun{{Job: job, Seqs: []uint32{0}}}})
	receipt := model.Receipt{Job: job, Outcome: model.Errored, Last: true}
	if delivered {
		receipt = model.Receipt{Job: job, Outcome: model.Delivered, PriceRow: "tier:plain",
			Quantity: 1, Items: 2, Last: true}
	}
	b.must(command.SettlePayload{Receipts: []model.Receipt{receipt}})
	b.must(command.CloseRunPayload{Job: job})
}

// A trial is charged and closed like a run, under its source. The scraper and its runs stay as they
// were.
func TestTrial(t *testing.T) {
	b := newTrials(t)
	run := command.LaunchRunPayload{Job: b.ids.New(), Entry: b.ids.New(), Customer: customer,
		Scraper: b.scraper, List: b.ids.New(),
		Links: 1, Tiers: model.TiersOf(model.Plain)}
	b.must(run)
	sample := b.trial(b.scraper, command.Trial{Source: model.SourceSample, Group: b.group})
	b.must(sample) // although the scraper has an active run
	job := b.view().Job(sample.Job)
	if !job.Trial() || job.Source != model.SourceSample || !job.Group.IsZero() ||
		job.MaxPages != 1 {
		t.Errorf("the trial is %+v", job)
	}
	if recipe := b.view().Recipe(job.Scraper, job.Revision); recipe == nil ||
		recipe.Recipe.Fields[0].Name != "t" {
		t.Errorf("its recipe is %+v", recipe)
	}
	b.end(sample.Job, true)
	entry := b.view().Entry(sample.Entry)
	if entry.Source != model.SourceSample || entry.Scraper != b.scraper || entry.Group != b.group ||
		entry.FreeDelta != -1 ||
		entry.Status != state.EntrySettled {
		t.Errorf("its entry is %+v", entry)
	}
	if recipe := b.view().Recipe(job.Scraper, job.Revision); recipe != nil {
		t.Error("the recipe outlives the trial")
	}
	if s := b.view().Scraper(b.scraper); s.LastJob != run.Job {
		t.Errorf("the scraper's newest run is %s", s.LastJob)
	}
	b.view().ScraperJobs(b.scraper, func(j *state.Job) bool {
		if j.ID != run.Job {
			t.Errorf("the scraper has the run %s", j.ID)
		}
		return true
	})
	for name, c := range map[string]struct {
		change func(*command.LaunchRunPayload)
		want   fault.Code
	}{
		"unknown scraper": {func(p *command.LaunchRunPayload) { p.Scraper = ids.ID{9} },
			fault.ScraperNotFound},
		"foreign scraper": {func(p *command.LaunchRunPayload) { p.Customer = "other" },
			fault.ScraperNotFound},
		"unknown group": {func(p *command.LaunchRunPayload) { p.Trial.Group = ids.ID{9} },
			fault.GroupNotFound},
		"foreign group": {func(p *command.LaunchRunPayload) {
			p.Customer, p.Scraper = "other",
				ids.ID{}
		},
			fault.GroupNotFound},
		"unknown key": {func(p *command.LaunchRunPayload) { p.Trial.Key = ids.ID{9} },
			fault.Unauthorized},
	} {
		p := b.trial(b.scraper, command.Trial{Source: model.SourceSample, Group: b.group})
		c.change(&p)
		if err := b.do(p); fault.CodeOf(err) != c.want {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A trial that delivered nothing has no ledger entry; other trials, and all runs, have one.
func TestNothingDeliveredNothingEntered(t *testing.T) {
	b := newTrials(t)
	for name, c := range map[string]struct {
		payload   command.LaunchRunPayload
		delivered bool
	}{
		"a trial with a page": {b.trial(b.scraper, command.Trial{Source: model.SourceSample}),
			true},
		"a trial without a page": {b.trial(b.scraper, command.Trial{Source: model.SourceSample}),
			false},
		"a run without a page": {command.LaunchRunPayload{Job: b.ids.New(), Entry: b.ids.New(),
			Customer: customer, Scraper: b.scraper,
			List: b.ids.New(), Links: 1, Tiers: model.TiersOf(model.Plain)}, false},
	} {
		before := *b.view().Wallet(customer)
		b.must(c.payload)
		b.end(c.payload.Job, c.delivered)
		entered := b.view().Entry(c.payload.Entry) != nil
		if want := c.delivered || c.payload.Trial == nil; entered != want {
			t.Errorf("%s: entered %v", name, entered)
		}
		if after := *b.view().Wallet(customer); !entered && after != before {
			t.Errorf("%s: the wallet was %+v and is %+v", name, before, after)
		}
	}
}

// A key with the scope LLM_READ has twenty billable trials a day. Trials that deliver nothing are
// not counted.
func TestTrialsOfADay(t *testing.T) {
	b := newTrials(t)
	key := b.ids.New()
	b.must(command.MintKeyPayload{ID: key, Customer: customer, Prefix: "abcdefg",
		Scope: model.ScopeLLMRead})
	preview := func() command.LaunchRunPayload {
		return b.trial(ids.ID{},
			command.Trial{Source: model.SourcePreviewURL, Group: b.group, Key: key})
	}
	for n := range 25 {
		p := preview()
		b.must(p)
		b.end(p.Job, n >= 5)
	}
	if err := b.do(preview()); fault.CodeOf(err) != fault.TrialLimitReached {
		t.Fatalf("the 21st billable trial: %v", err)
	}
	b.must(b.trial(ids.ID{}, command.Trial{Source: model.SourcePreviewURL})) // another credential
	b.now += 24 * 60 * 60 * 1000
	next := preview()
	b.must(next)
	// A trial counted yesterday that ends today gives nothing back.
	b.now += 24 * 60 * 60 * 1000
	today := preview()
	b.must(today)
	b.end(next.Job, false)
	if got := b.view().Key(key); got.Trials != 1 {
		t.Errorf("%d trials are counted today", got.Trials)
	}
	b.must(command.RevokeKeyPayload{ID: key, Customer: customer})
	b.end(today.Job, false)
}

// An identical trial is launched once. Asking for it while it is under way, or within a minute
// after it has delivered, gets that one.
func TestSameTrials(t *testing.T) {
	b := newTrials(t)
	key := b.ids.New()
	b.must(command.MintKeyPayload{ID: key, Customer: customer, Prefix: "abcdefg",
		Scope: model.ScopeLLMRead})
	launch := func(who string, name byte, joins bool) ids.ID {
		t.Helper()
		p := b.trial(ids.ID{}, command.Trial{Source: model.SourcePreviewURL, Joins: joins})
		p.Customer = who
		if who == customer {
			p.Trial.Key = key
		}
		if name > 0 {
			p.Trial.Same = state.Hash{name}
		}
		result := b.apply(p)
		if result.Err != nil {
			t.Fatal(result.Err)
		}
		return result.Value.(command.Launched).Job
	}
	first := launch(customer, 1, true)
	for name, c := range map[string]struct {
		job  ids.ID
		same bool
	}{
		"the same":           {launch(customer, 1, true), true},
		"another":            {launch(customer, 2, true), false},
		"another customer's": {launch("other", 1, true), false},
		"one without a name": {launch(customer, 0, true), false},
	} {
		if c.job == first != c.same {
			t.Errorf("%s is answered by %s, the first is %s", name, c.job, first)
		}
	}
	if got := b.view().Key(key).Trials; got != 3 {
		t.Errorf("%d trials of the key are counted, want 3", got)
	}
	b.must(command.StopRunPayload{Customer: customer, Job: first})
	if launch(customer, 1, true) != first {
		t.Error("a trial that drains may deliver still, and is not waited for")
	}
	b.must(command.CloseRunPayload{Job: first})
	fresh := launch(customer, 1, true)
	if fresh == first {
		t.Error("a trial that has delivered nothing is answered")
	}
	b.end(fresh, true)
	b.drop()
	b.now += state.SameMillis - 1
	if launch(customer, 1, true) != fresh {
		t.Error("what has just delivered is launched again")
	}
	if again := launch(customer, 1, false); again == fresh {
		t.Error("who wants it anew is answered by the last one")
	} else {
		b.must(command.StopRunPayload{Customer: customer, Job: again})
		b.must(command.CloseRunPayload{Job: again})
	}
	b.now++
	if launch(customer, 1, true) == fresh {
		t.Error("a trial of more than a minute ago is answered")
	}
	b.drop()
	if b.view().Job(fresh) != nil {
		t.Error("a trial that is no answer any more stays in the state")
	}
}

// TestTheLastTrialsOfACustomerLeave: trials that still lend their outcome when they are archived
// leave with a later drop, which others cause. No drop removes many.
func TestTheLastTrialsOfACustomerLeave(t *testing.T) {
	b := newTrials(t)
	launch := func(n int) ids.ID {
		p := b.trial(ids.ID{}, command.Trial{Source: model.SourcePreviewURL,
			Same: state.Hash{1, byte(n), byte(n >> 8)}, Joins: true})
		b.must(p)
		b.end(p.Job, false)
		return p.Job
	}
	first := launch(0)
	b.now += 10_000
	b.drop()
	last := launch(1)
	b.now += state.SameMillis - 10_000
	left := func() (count int) {
		b.view().SharedTrials(func(*state.Job) bool { count++; return true })
		return count
	}
	other := func() {
		b.must(command.AdjustWalletPayload{Customer: "other", Entry: b.ids.New(), Amount: 1})
		b.drop()
	}
	other()
	if b.view().Job(first) != nil || b.view().Job(last) == nil {
		t.Error("a trial that lends no more stays, or one that lends has left")
	}
	b.now += state.SameMillis
	other()
	if left() != 0 {
		t.Errorf("%d trials stay in the state", left())
	}
	const extra = 5
	for n := range maxTrialsGone + extra {
		launch(2 + n)
	}
	b.drop()
	b.now += state.SameMillis
	for _, want := range []int{extra, 0} {
		if other(); left() != want {
			t.Errorf("%d trials are left, want %d", left(), want)
		}
	}
}

// drop removes everything sealed from the state, as if archived.
func (b *trials) drop() {
	b.Helper()
	from := b.view().ArchivedTo()
	b.must(command.DropArchivedPayload{Generation: b.view().Ancestry(b.index)[0].Generation,
		From: from, Upto: b.index})
}

func TestStopOneRun(t *testing.T) {
	b := newTrials(t)
	p := b.trial(ids.ID{}, command.Trial{Source: model.SourcePreviewURL})
	b.must(p)
	for _, stop := range []command.StopRunPayload{{Customer: "other", Job: p.Job},
		{Customer: customer, Job: ids.ID{9}}} {
		if err := b.do(stop); fault.CodeOf(err) != fault.NotFound {
			t.Errorf("stop %+v: %v", stop, err)
		}
	}
	b.must(command.StopRunPayload{Customer: customer, Job: p.Job})
	b.must(command.StopRunPayload{Customer: customer, Job: p.Job}) // changes nothing
	b.must(command.CloseRunPayload{Job: p.Job})
	if job := b.view().Job(p.Job); job.State != model.Stopped || !job.Closed {
		t.Errorf("the run is %+v", job)
	}
}
