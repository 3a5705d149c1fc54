package fsm

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
)

// mostKept bounds a record with a result in a snapshot, in bytes, besides the customer's name.
const mostKept = 100

// bodyKept is what the hash of a streamed body may add.
const bodyKept = 10

// TestRecordsAreBrief: a call's record is small, whatever the call made or said. It gives a repeat
// the first answer, even when the result has changed since.
func TestRecordsAreBrief(t *testing.T) {
	long := strings.Repeat("x", 200)
	spec := model.Scraper{Name: long, Type: model.SingleProduct,
		ItemsConfig: make([]model.Field, 200)}
	group := command.PutGroupPayload{Create: true, Customer: customer, Name: long, DataTable: long,
		StartType: "MANUAL", ShouldMatchProducts: true}
	key := strings.Repeat("k", 255)
	for name, make := range map[string]func(*trials) (call, after command.Payload){
		"a new group": func(b *trials) (call, after command.Payload) {
			p, changed := group, group
			p.ID = b.ids.New()
			changed.Create, changed.ID, changed.Name = false, p.ID, "other"
			return p, changed
		},
		"a changed group": func(b *trials) (call, after command.Payload) {
			p, changed := group, group
			p.Create, p.ID = false, b.group
			changed.Create, changed.ID, changed.Name = false, b.group, "other"
			return p, changed
		},
		"a new scraper": func(b *trials) (call, after command.Payload) {
			p := command.PutScraperPayload{Create: true, ID: b.ids.New(), Customer: customer,
				Group: b.group, Spec: spec, ListRun: true, Tag: model.ProductListTag}
			changed := p
			changed.Create, changed.Spec = false, model.Scraper{Name: "other", Type: "AI_CONF"}
			return p, changed
		},
		"a changed scraper": func(b *trials) (call, after command.Payload) {
			b.now += math.MaxInt32 * 4
			p := command.PutScraperPayload{ID: b.scraper, Customer: customer, Group: b.group,
				Spec: spec}
			changed := p
			changed.Spec = model.Scraper{Name: "other", Type: "AI_CONF"}
			return p, changed
		},
		"a webhook": func(b *trials) (call, after command.Payload) {
			p := command.PutWebhookPayload{ID: b.ids.New(), Customer: customer, URL: long,
				Events: model.Events(), Off: true, Secret: []byte(long[:24])}
			changed := p
			changed.URL, changed.Secret = "https://other.test/", nil
			return p, changed
		},
		"a schema": func(b *trials) (call, after command.Payload) {
			p := command.PutSchemaPayload{ID: b.ids.New(), Customer: customer, Name: long,
				Type: "t", Content: []byte(strings.Repeat(long, 300)), Description: long,
				DomainPatterns: []string{long}}
			changed := p
			changed.Known, changed.Content = p.ID, []byte("{}")
			return p, changed
		},
		"a run": func(b *trials) (call, after command.Payload) {
			p := command.LaunchRunPayload{Job: b.ids.New(), Entry: b.ids.New(),
				Customer: customer, List: b.ids.New(), Links: math.MaxUint32,
				Dropped: math.MaxUint32, Tiers: model.TiersOf(model.Plain), Scraper: b.scraper}
			return p, command.StopRunPayload{Customer: customer, Scraper: b.scraper}
		},
		"a category": func(b *trials) (call, after command.Payload) {
			p := command.PutCategoryPayload{ID: b.ids.New(), Customer: customer, Group: b.group,
				Name: long, Filters: []byte(strings.Repeat(long, 80))}
			changed := p
			changed.Filters = []byte("{}")
			return p, changed
		},
		"a start type": func(b *trials) (call, after command.Payload) {
			p := command.PutStartTypePayload{Customer: customer, Group: b.group,
				StartType: "DAILY"}
			return p, command.PutStartTypePayload{Customer: customer, Group: b.group,
				StartType: "MANUAL"}
		},
		"a sign-up": func(*trials) (call, after command.Payload) {
			return command.SignUpPayload{Customer: customer, Email: long, Firstname: long,
					Lastname: long}, command.RenameCustomerPayload{Customer: customer,
					Firstname: "other"}
		},
		"a stop": func(b *trials) (call, after command.Payload) {
			b.must(command.LaunchRunPayload{Job: b.ids.New(), Entry: b.ids.New(),
				Customer: customer, List: b.ids.New(), Links: 1,
				Tiers: model.TiersOf(model.Plain), Scraper: b.scraper})
			return command.StopRunPayload{Customer: customer, Scraper: b.scraper},
				command.TickPayload{}
		},
		"an adjustment": func(b *trials) (call, after command.Payload) {
			p := command.AdjustWalletPayload{Customer: customer, Entry: b.ids.New(),
				Amount: math.MaxInt32 * 1_000, Note: strings.Repeat(long, 2)}
			return p, command.AdjustWalletPayload{Customer: customer, Entry: b.ids.New(),
				Amount: 1}
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newTrialsWith(t, 0, 1_000_000)
			b.now += 1_700_000_000_000
			call, after := make(b)
			apply := func() Result {
				data, err := b.m.Encode(b.ids.New(), b.now, call, &command.Call{
					Customer: customer, Operation: "svc_create_scraper", Key: key,
					Request: math.MaxUint64, Body: math.MaxUint64})
				if err != nil {
					t.Fatal(err)
				}
				b.index++
				return b.m.Apply(b.index, data)
			}
			first := apply()
			if first.Err != nil || first.Replayed {
				t.Fatalf("the first call: %+v", first)
			}
			record := b.view().Claim(customer, "svc_create_scraper", key)
			if n := record.Bytes() - len(customer); n > mostKept+bodyKept {
				t.Errorf("its record takes %d bytes, more than %d", n, mostKept+bodyKept)
			}
			t.Logf("%d bytes", record.Bytes()-len(customer))
			b.must(after)
			b.now += claimKeptMillis - 1
			again := apply()
			if d := cmp.Diff(first.Value, again.Value); d != "" || !again.Replayed ||
				again.Body != math.MaxUint64 {
				t.Errorf("the call is answered otherwise than the first time: %s", d)
			}
			if claims := b.view().Customer(customer).ClaimBytes; claims != record.Bytes() {
				t.Errorf("the customer's records are said to take %d bytes", claims)
			}
			b.now++
			b.must(command.TickPayload{})
			if c := b.view().Customer(customer); c.ClaimBytes != 0 || c.Claims != 0 {
				t.Errorf("without records the customer has %d of %d bytes", c.Claims, c.ClaimBytes)
			}
		})
	}
}

// TestLargeResultsAreLookedUp: a command that changes a little of something large keeps little for
// a proposer that missed the answer. Repeating it answers the current state, and changes nothing.
func TestLargeResultsAreLookedUp(t *testing.T) {
	c := calls{trials: newTrialsWith(t, 0, 0)}
	long := strings.Repeat("x", 4_000)
	c.must(command.PutScraperPayload{ID: c.scraper, Customer: customer, Group: c.group,
		Spec: model.Scraper{Name: "s", Type: model.SingleProduct, ItemsConfig: []model.Field{
			{Name: "f", Selector: long}}}})
	apply := func(id ids.ID, payload command.Payload) Result {
		t.Helper()
		data, err := c.m.Encode(id, c.now, payload, nil)
		if err != nil {
			t.Fatal(err)
		}
		c.index++
		return c.m.Apply(c.index, data)
	}
	info := command.ChangeInfoPayload{Customer: customer, Set: []state.Info{{Key: "a",
		Value: long}}}
	other := info
	other.Set = []state.Info{{Key: "b", Value: long}}
	keeps := command.PutRetentionPayload{Customer: customer, Scraper: c.scraper, Count: 3}
	for name, payload := range map[string]command.Payload{"retention": keeps,
		"what it keeps": info,
		"its name":      command.RenameCustomerPayload{Customer: customer, Firstname: "a"}} {
		id := c.ids.New()
		first := apply(id, payload)
		if first.Err != nil {
			t.Fatal(first.Err)
		}
		record := c.view().Result(id)
		if record == nil || len(record.Result)+len(record.Kept)+len(record.Fault) > 0 {
			t.Errorf("%s: kept is %+v", name, record)
		}
		if again := apply(id, payload); again.Err != nil ||
			cmp.Diff(first.Value, again.Value) != "" {
			t.Errorf("%s: again it is %+v, want %+v", name, again, first)
		}
		if wrong := apply(id, command.OpenCustomerPayload{}); wrong.Err == nil {
			t.Errorf("%s: another command under its id: %+v", name, wrong)
		}
	}
	id := c.ids.New()
	apply(id, info)
	c.must(other)
	if again := apply(id, info); len(again.Value.(state.Profile).Info) != 2 {
		t.Errorf("after another change it is %+v", again)
	}
	id = c.ids.New()
	apply(id, keeps)
	deletion := command.Deletion{Customer: customer, Operation: command.OpDeleteScraper,
		Target: c.scraper}
	c.must(command.PreviewDeletePayload{Deletion: deletion, Token: "t"})
	c.must(command.DeleteScraperPayload{Deletion: deletion, Token: "t"})
	if again := apply(id, keeps); fault.CodeOf(again.Err) != fault.ScraperNotFound {
		t.Errorf("of a scraper that is gone it is %+v", again)
	}
}

// TestRecordsKeepWhatTheRequestDoesNotSay: an update that names only some members of a group is
// answered with the others as they were.
func TestRecordsKeepWhatTheRequestDoesNotSay(t *testing.T) {
	c := calls{trials: newTrialsWith(t, 0, 0)}
	put := command.PutGroupPayload{ID: c.group, Customer: customer, Name: "as it was",
		StartType: "DAILY", Filled: true}
	first := c.call(put)
	put.Name = "filled in later"
	if again := c.call(put); !again.Replayed || cmp.Diff(first.Value, again.Value) != "" {
		t.Errorf("answered %+v, want %+v", again, first)
	}
}

// TestRecordsAreBoundedInBytes: at the bound the next call must wait, until records have expired.
func TestRecordsAreBoundedInBytes(t *testing.T) {
	c := calls{trials: newTrialsWith(t, 0, 0)}
	fill := func(bytes int) {
		err := c.m.Store().Update(c.index, 0, func(tx *state.Tx) error {
			full := *tx.Customer(customer)
			full.ClaimBytes = bytes
			tx.PutCustomer(&full)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	put := command.PutGroupPayload{ID: c.group, Customer: customer, Name: "n"}
	fill(maxClaimBytes)
	if got := c.call(put); fault.CodeOf(got.Err) != fault.IdempotencyOverflow {
		t.Errorf("at the bound: %+v", got)
	}
	fill(maxClaimBytes - 1)
	if got := c.call(put); got.Err != nil {
		t.Errorf("below the bound: %+v", got)
	}
}

// TestRecordsOfBeforeAreAnswered: a call made or claimed before its cluster had brief records is
// completed and answered afterwards.
func TestRecordsOfBeforeAreAnswered(t *testing.T) {
	d := newDefiner(t, 1)
	owner, group := d.owner(1)
	put := command.PutGroupPayload{ID: group, Customer: owner, Name: "n"}
	stop := command.StopRunPayload{Customer: owner, Job: ids.ID{9}}
	apply := func(key string, ticket ids.ID, payload command.Payload) Result {
		data, err := d.m.Encode(d.id(), int64(d.index), payload, &command.Call{Customer: owner,
			Operation: "o", Key: key, Request: 1, Ticket: ticket})
		if err != nil {
			t.Fatal(err)
		}
		d.index++
		return d.m.Apply(d.index, data)
	}
	first := apply("done", ids.ID{}, put)
	ticket := apply("claimed", ids.ID{}, command.ClaimCallPayload{}).ID
	d.must(command.ActivateVersionPayload{Version: command.Newest})
	if again := apply("done", ids.ID{}, put); !again.Replayed ||
		cmp.Diff(first.Value, again.Value) != "" {
		t.Errorf("answered %+v, want %+v", again, first)
	}
	refused := apply("claimed", ticket, stop)
	if again := apply("claimed", ids.ID{}, stop); !again.Replayed ||
		again.Err.Error() != refused.Err.Error() {
		t.Errorf("answered %+v, want %+v", again, refused)
	}
	if n := d.m.Store().View().Customer(owner).Claims; n != 2 {
		t.Errorf("%d records are counted, want 2", n)
	}
}
