package fsm

import (
	"errors"
	"fmt"
	"testing"

	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
)

// bench applies commands one after another.
type bench struct {
	t     *testing.T
	m     *FSM
	ids   ids.Sequence
	index uint64
	now   int64
}

func newBench(t *testing.T) *bench {
	b := &bench{t: t, m: New(), now: 1}
	b.must(command.CreateClusterPayload{Version: command.Newest, ID: b.ids.New(), Shards: 1,
		FreeGrant: 5, Prices: testPrices})
	for _, ref := range []string{"a", "b"} {
		b.must(command.OpenCustomerPayload{Customer: ref, Entry: b.ids.New()})
	}
	return b
}

func (b *bench) do(payload command.Payload) Result {
	b.t.Helper()
	data, err := b.m.Encode(b.ids.New(), b.now, payload, nil)
	if err != nil {
		b.t.Fatal(err)
	}
	b.index++
	return b.m.Apply(b.index, data)
}

func (b *bench) must(payload command.Payload) any {
	b.t.Helper()
	result := b.do(payload)
	if result.Err != nil {
		b.t.Fatalf("command %d: %v", payload.Declaration().Number, result.Err)
	}
	return result.Value
}

func (b *bench) refused(payload command.Payload, code fault.Code) {
	b.t.Helper()
	if result := b.do(payload); !errors.Is(result.Err, fault.New(code, "")) {
		b.t.Fatalf("command %d: %v, want %s", payload.Declaration().Number, result.Err, code)
	}
}

func (b *bench) view() *state.View { return b.m.Store().View() }

func (b *bench) schema(customer string, known ids.ID, version int64, content string) state.Schema {
	b.t.Helper()
	return b.must(command.PutSchemaPayload{ID: b.ids.New(), Known: known, Customer: customer,
		Type: "PRODUCT", Version: version,
		Content: []byte(content)}).(state.Schema)
}

// scraper makes an AI_CONF scraper of the customer a.
func (b *bench) scraper(name string, schema ids.ID) state.Scraper {
	b.t.Helper()
	group := b.ids.New()
	b.must(command.PutGroupPayload{Create: true, ID: group, Customer: "a", Name: name})
	return b.must(command.PutScraperPayload{Create: true, ID: b.ids.New(), Customer: "a",
		Group: group, Spec: model.Scraper{
			Name: name, Type: model.AIConf,
			Schema: &model.SchemaRef{ID: schema.String()}}}).(state.Scraper)
}

func (b *bench) launch(s ids.ID) (command.Launched, error) {
	b.t.Helper()
	result := b.do(command.LaunchRunPayload{Job: b.ids.New(), Entry: b.ids.New(), Customer: "a",
		Scraper: s, List: b.ids.New(),
		Links: 1, Tiers: model.TiersOf(model.Plain)})
	launched, _ := result.Value.(command.Launched)
	return launched, result.Err
}

func TestPutSchema(t *testing.T) {
	b := newBench(t)
	own := b.schema("a", ids.ID{}, 1, "one")
	if again := b.schema("a", own.ID, 2, "two"); again.ID != own.ID || again.Version != 2 ||
		string(b.view().Schema(own.ID).Content) != "two" {
		t.Errorf("an update made %+v", again)
	}
	if foreign := b.schema("b", own.ID, 1, "three"); foreign.ID == own.ID ||
		foreign.Customer != "b" {
		t.Errorf("another customer's id made %+v", foreign)
	}
	global := b.schema("", ids.ID{}, 1, "global")
	if again := b.schema("", ids.ID{}, 1, "newer"); again.ID != global.ID {
		t.Errorf("type and version did not find the global schema: %+v", again)
	}
	second := b.schema("", ids.ID{}, 2, "second")
	b.refused(command.PutSchemaPayload{ID: b.ids.New(), Known: second.ID, Type: "PRODUCT",
		Version: 1}, fault.SchemaValidation)
	if stolen := b.schema("", own.ID, 3, "x"); stolen.ID == own.ID {
		t.Error("a customer's schema became global")
	}
	v := b.view()
	if v.ReadableSchema("b", own.ID.String()) != nil ||
		v.ReadableSchema("b", global.ID.String()) == nil || v.ReadableSchema("a", "x") != nil {
		t.Error("schemas are readable by others than they should be")
	}
	for i := range maxSchemas - 1 {
		b.schema("a", ids.ID{}, int64(i), "x")
	}
	b.refused(command.PutSchemaPayload{ID: b.ids.New(), Customer: "a"}, fault.LimitReached)
	b.schema("a", own.ID, 1, "an update is none more")
}

// TestSchemaIsFrozenAtLaunch: a run uses the schema of its launch, and the next one the newer.
func TestSchemaIsFrozenAtLaunch(t *testing.T) {
	b := newBench(t)
	schema := b.schema("a", ids.ID{}, 1, "one")
	scraper := b.scraper("s", schema.ID)
	recipe := func(revision uint32) string {
		return string(b.view().Recipe(scraper.ID, revision).Recipe.Schema)
	}
	if recipe(scraper.Revision) != "one" {
		t.Fatalf("saved with %q", recipe(scraper.Revision))
	}
	first, err := b.launch(scraper.ID)
	if err != nil {
		t.Fatal(err)
	}
	running := b.view().Job(first.Job).Revision
	b.schema("a", schema.ID, 1, "two")
	if recipe(running) != "one" {
		t.Errorf("a change of the schema reached the run under way: %q", recipe(running))
	}
	b.must(command.StopRunPayload{Customer: "a", Scraper: scraper.ID})
	second, err := b.launch(scraper.ID)
	if err != nil {
		t.Fatal(err)
	}
	newer := b.view().Job(second.Job).Revision
	if newer == running || recipe(newer) != "two" || recipe(running) != "one" ||
		b.view().Scraper(scraper.ID).Revision != newer {
		t.Errorf("revisions %d %q and %d %q", running, recipe(running), newer, recipe(newer))
	}
	b.must(command.StopRunPayload{Customer: "a", Scraper: scraper.ID})
	if third, err := b.launch(scraper.ID); err != nil || b.view().Job(third.Job).Revision != newer {
		t.Errorf("a launch without a change made another revision: %v", err)
	}
	b.refused(command.PutScraperPayload{ID: scraper.ID, Customer: "a", Group: scraper.Group,
		Spec: model.Scraper{Name: "s",
			Type: model.AIConf, Schema: &model.SchemaRef{ID: b.schema("b", ids.ID{}, 1,
				"x").ID.String()}}}, fault.SchemaGone)
}

// TestDeleteInTwoCalls: decision 28.
func TestDeleteInTwoCalls(t *testing.T) {
	b := newBench(t)
	schema := b.schema("a", ids.ID{}, 1, "one")
	d := command.Deletion{Customer: "a", Operation: command.OpDeleteSchema, Target: schema.ID}
	tokens := 0
	preview := func(d command.Deletion) string {
		tokens++
		return b.must(command.PreviewDeletePayload{Deletion: d,
			Token: fmt.Sprint("t", tokens)}).(state.Preview).Token
	}
	other, query := d, d
	other.Customer, query.Query = "b", "withData=true"
	b.refused(command.PreviewDeletePayload{Deletion: other, Token: "x"}, fault.SchemaNotFound)
	b.refused(command.PreviewDeletePayload{Deletion: command.Deletion{Operation: "svc_other"},
		Token: "x"}, fault.NotSupported)
	b.refused(command.DeleteSchemaPayload{Deletion: other}, fault.SchemaNotFound)
	b.refused(command.DeleteSchemaPayload{Deletion: d}, fault.PreviewRequired)
	b.refused(command.DeleteSchemaPayload{Deletion: d, Token: "made up"}, fault.PreviewRequired)

	token := preview(query)
	// another query
	b.refused(command.DeleteSchemaPayload{Deletion: d, Token: token}, fault.PreviewRequired)
	b.refused(command.DeleteSchemaPayload{Deletion: d}, fault.PreviewRequired)

	token = preview(d)
	b.now += previewKeptMillis
	// expired
	b.refused(command.DeleteSchemaPayload{Deletion: d, Token: token}, fault.PreviewRequired)
	b.must(command.TickPayload{})
	if left := b.view().Previews("a"); len(left) != 0 {
		t.Errorf("%d previews outlive their time", len(left))
	}

	token = preview(d)
	scraper := b.scraper("s", schema.ID)
	b.refused(command.DeleteSchemaPayload{Deletion: d, Token: token}, fault.CascadeDrift)
	// used up by the refusal
	b.refused(command.DeleteSchemaPayload{Deletion: d, Token: token}, fault.PreviewRequired)

	token = preview(d)
	if kept := b.view().Preview(token); kept.Cascade.Counts[0] != (state.Count{Name: "scrapers",
		N: 1}) {
		t.Errorf("the preview shows %+v", kept.Cascade)
	}
	b.must(command.DeleteSchemaPayload{Deletion: d}) // without the token: the newest preview
	b.refused(command.DeleteSchemaPayload{Deletion: d, Token: token}, fault.SchemaNotFound)
	if _, err := b.launch(scraper.ID); !errors.Is(err, fault.New(fault.SchemaGone, "")) {
		t.Errorf("a scraper without its schema was launched: %v", err)
	}
	for range maxPreviews + 5 {
		preview(command.Deletion{Customer: "a", Operation: command.OpDeleteSchema,
			Target: b.schemaOnce("a")})
	}
	if kept := b.view().Previews("a"); len(kept) != maxPreviews {
		t.Errorf("%d previews are kept", len(kept))
	}
}

// schemaOnce returns a schema of the customer, and makes it if missing.
func (b *bench) schemaOnce(customer string) ids.ID {
	if have := b.view().Schemas(customer); len(have) > 0 {
		return have[0].ID
	}
	return b.schema(customer, ids.ID{}, 1, "x").ID
}
