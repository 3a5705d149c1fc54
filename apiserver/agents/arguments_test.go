package agents_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"shoal.dev/shoal/apiserver"
	"shoal.dev/shoal/apiserver/internal/apitest"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/blobstore"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/rowstore"
)

// odd are values that almost no argument accepts, and some that most accept.
func odd(theirs ids.ID) []string {
	return []string{`""`, `[]`, `{"unknown":1}`, `0`, `"` + long("x", 5_000) + `"`,
		`"\u202ea\u0007\u0000"`, `{"a":1,"a":2}`,
		// the rest is for arguments of a single operation
		`null`, `{}`, `[null]`, `[7]`, `true`, `-1`, `1.5`, `2.0`, `1e300`, `9223372036854775808`,
		`"NaN"`, `"\ud800"`, `"../../key/list"`, `"0123456789abcdef01234567"`,
		`"` + theirs.String() + `"`, `"` + long("0", 24) + `"`, long("[", 40) + long("]", 40)}
}

// common is how many of the odd values are tried on arguments that all tools share. In short mode,
// all arguments get only these.
const common = 7

// TestEveryArgumentOfEveryTool gives odd values to every argument of every tool, with the others
// valid. The argument is refused by its name, or accepted. A refused call changes nothing.
func TestEveryArgumentOfEveryTool(t *testing.T) {
	r, all := everything(t)
	values := odd(r.NewGroup(t, "bob", "theirs"))
	sent, refused := 0, 0
	for _, c := range all {
		for name, schema := range c.input.Properties {
			given := values
			if name == "cursor" || name == "idempotencyKey" || testing.Short() {
				given = values[:common]
			}
			for _, value := range append(slices.Clone(given), "") {
				without := maps.Clone(c.with)
				delete(without, name)
				with := maps.Clone(without)
				if value != "" {
					with[name] = json.RawMessage(value)
				}
				before := r.counts()
				said := r.give(t, c.name, with)
				sent++
				if said == nil {
					if !c.isRight(name, value) {
						t.Errorf("%s takes %s %.60s, and is described by %v", c.name, name, value,
							schema)
					}
					continue
				}
				refused++
				diff := cmp.Diff(before, r.counts())
				if diff != "" && said.Code != fault.Unavailable { // a preview that nobody completed
					t.Errorf("%s %s %.60s is refused (%s), and changes %s", c.name, name, value,
						said.Code, diff)
				}
				c.holdRefused(t, name, value, said)
			}
		}
		said := r.give(t, c.name, map[string]json.RawMessage{"nothing": []byte("1")})
		if said == nil || said.Code != fault.UnknownParameter || !said.names("nothing") {
			t.Errorf("%s takes an argument that there is not: %+v", c.name, said)
		}
	}
	t.Logf("%d calls, %d are refused", sent, refused)
	if len(all) < 100 || refused < 2_500 {
		t.Errorf("only %d tools, and %d refusals", len(all), refused)
	}
}

// TestAnswersCanBeSaved saves objects as they were read, with a new name.
func TestAnswersCanBeSaved(t *testing.T) {
	r := start(t)
	a := r.connect(t, apitest.LLM, "", nil)
	for _, c := range []struct {
		read string
		with args
		at   string
		save string
		id   ids.ID
	}{
		{"svc_get_scraper", args{"id": r.scraper}, "result", "svc_create_scraper", r.scraper},
		{"svc_get_scraper", args{"id": r.scraper}, "result", "svc_create_scraper_v2", r.scraper},
		{"svc_get_scraper_v2", args{"id": r.scraper}, "result", "svc_create_scraper_v2",
			r.scraper},
		{"svc_list_groups", nil, "result.0", "svc_put_group", r.group},
	} {
		now, _ := a.call(c.read, c.with).At(c.at)
		changed, is := now.(map[string]any)
		if !is {
			t.Fatalf("%s has no %s", c.read, c.at)
		}
		changed["name"] = "saved with " + c.save
		a.want(c.save, changed, map[string]any{"error": nil, "result.id": c.id,
			"result.name": changed["name"]})
	}
}

// TestRefusalsSayWhatToDo: a refusal names all that is wrong at once, and what agents can do.
func TestRefusalsSayWhatToDo(t *testing.T) {
	r := start(t)
	list := client.PutScraper{Create: true, ID: r.IDs.New(), Customer: "alice", Group: r.group,
		ListRun: true, Spec: model.Scraper{Name: "list", Type: model.SingleProduct,
			ItemsConfig: []model.Field{{Name: "name", Selector: "h1", Kind: "TEXT"}}}}
	r.Client.Must(t, list)
	a := r.connect(t, apitest.LLM, "", nil)
	for _, c := range []struct {
		name   string
		with   args
		detail string
		fields []string
	}{
		{"svc_preview_delete_run_data", args{"id": r.scraper, "jobId": r.scraper},
			"id: the tool has no such argument (it takes scraperJobStatusId) (and 2 more)",
			[]string{"id", "jobId", "scraperJobStatusId"}},
		{"svc_preview_scraper_from_url", args{"url": "https://shop.test/"},
			"maxChargeMicros: is required of agents (and 2 more)",
			[]string{"maxChargeMicros", "name", "groupId"}},
		{"svc_run_scraper", args{"id": "x"},
			"maxChargeMicros: is required of agents (and 1 more)",
			[]string{"maxChargeMicros", "id"}},
		{"svc_run_scraper", args{"id": r.scraper, "maxChargeMicros": []int{1}},
			"maxChargeMicros: must be one value, not a list", []string{"maxChargeMicros"}},
		{"svc_run_scraper", args{"id": list.ID, "maxChargeMicros": 1000},
			"sourceConfig.url: the scraper of a list run has no start address; run its list " +
				"through svc_run_scraper_url_list", []string{"sourceConfig.url"}},
		{"svc_get_group_data_client", args{"id": r.group, "page": 1_000_000},
			"page: page times size may be at most 100000; read on with the cursor of " +
				"svc_get_data with groupId=" + r.group.String(), []string{"page"}},
	} {
		got := a.call(c.name, c.with)
		var fields []string
		told, _ := got.At("error.errors")
		items, _ := told.([]any)
		for _, item := range items {
			field, _ := item.(map[string]any)["field"].(string)
			fields = append(fields, field)
		}
		if said := got.Text("error.detail"); said != c.detail || !slices.Equal(fields, c.fields) {
			t.Errorf("%s %v: %q of %q, want %q of %q", c.name, c.with, said, fields, c.detail,
				c.fields)
		}
	}
}

// toolCall is a valid call, or one that lacks only a token or a name.
type toolCall struct {
	name  string
	input *jsonschema.Schema
	with  map[string]json.RawMessage
}

// refusedBy is the refusal of a call.
type refusedBy struct {
	Code   fault.Code
	Status int
	Detail string
	Errors []struct{ Field, Message string }
	text   string
}

// names reports whether a refusal is about an argument.
func (s *refusedBy) names(argument string) bool {
	for _, one := range s.Errors {
		rest, is := strings.CutPrefix(one.Field, argument)
		if is && (rest == "" || rest[0] == '.' || rest[0] == '[') {
			return true
		}
	}
	return false
}

// isRight reports whether an argument may accept a value. A parameter may be any text, and an empty
// one counts as absent.
func (c *toolCall) isRight(name, value string) bool {
	if value == "" {
		return !slices.Contains(c.input.Required, name)
	}
	if !strings.ContainsAny(value[:1], "[{") || name == "filters" && value[0] == '{' {
		return true
	}
	one := &jsonschema.Schema{Type: "object", Defs: c.input.Defs,
		Properties: map[string]*jsonschema.Schema{"a": c.input.Properties[name]}}
	resolved, err := one.Resolve(nil)
	if err != nil {
		panic(err)
	}
	var read any
	return json.Unmarshal([]byte(value), &read) == nil &&
		resolved.Validate(map[string]any{"a": read}) == nil
}

// holdRefused requires the refusal to name the argument, or another one if this one may be valid.
func (c *toolCall) holdRefused(t *testing.T, name, value string, s *refusedBy) {
	t.Helper()
	if s.Status >= 500 && s.Code != fault.Unavailable && s.Code != fault.SourceUnreachable ||
		ofTheProgram.MatchString(s.text) {
		t.Errorf("%s %s %.60s is answered %.500s", c.name, name, value, s.text)
	}
	if s.names(name) || c.isRight(name, value) && (s.Status != 400 || s.Errors[0].Field != "" ||
		s.Code == fault.ScraperAlreadyRunning) {
		return
	}
	t.Errorf("%s %s %.60s is answered %s %.300s, which does not name it", c.name, name, value,
		s.Code, s.Detail)
}

// counts counts everything in the state except what any call leaves behind.
func (r *rig) counts() map[string]int {
	counts := r.Client.View().Counts()
	delete(counts, "claims")
	delete(counts, "results")
	return counts
}

// give calls a tool and returns its refusal; nil: it was accepted.
func (r *rig) give(t *testing.T, name string, with map[string]json.RawMessage) *refusedBy {
	t.Helper()
	var arguments strings.Builder // by hand: encoding a map would repair invalid values
	for argument, value := range with {
		if arguments.Len() > 0 {
			arguments.WriteByte(',')
		}
		fmt.Fprintf(&arguments, "%q:%s", argument, value)
	}
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":%q,`+
		`"arguments":{%s},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",`+
		`"io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},`+
		`"io.modelcontextprotocol/clientCapabilities":{}}}}`, name, arguments.String())
	var a apitest.Answer
	r.tick(t, time.Minute, func() {
		a = r.post(t, apitest.LLM, body, "Mcp-Protocol-Version", "2026-07-28", "Mcp-Method",
			"tools/call", "Mcp-Name", name)
	})
	text := string(a.Body)
	if _, data, is := strings.Cut(text, "data: "); is {
		text, _, _ = strings.Cut(data, "\n")
	}
	var reply struct {
		Result *struct {
			StructuredContent struct{ Error *refusedBy }
		}
	}
	err := json.Unmarshal([]byte(text), &reply)
	if err != nil || a.Status != 200 || reply.Result == nil {
		t.Errorf("%s %.300s is answered %d %.500q (%v)", name, arguments.String(), a.Status, a.Body,
			err)
		return nil
	}
	refusal := reply.Result.StructuredContent.Error
	if refusal != nil {
		refusal.text = text
	}
	return refusal
}

// everything makes one of everything for alice, and a valid call of each tool. Calls that delete
// come last.
func everything(t *testing.T) (*rig, []*toolCall) {
	t.Helper()
	blobs, err := blobstore.OpenDirectory(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = blobs.Close() })
	r := start(t, func(c *apiserver.Config) {
		c.Blobs = blobs
	})
	things := r.things(t)
	described := r.Call(t, apitest.Scenario{Do: "GET /v3/api-docs/mcp"})
	var document struct {
		Paths map[string]map[string]struct {
			OperationID string
			Parameters  []struct {
				Name, In string
				Example  json.RawMessage
			}
			RequestBody struct {
				Content map[string]struct{ Example json.RawMessage }
			}
		}
	}
	if err := json.Unmarshal(described.Body, &document); err != nil {
		t.Fatal(err)
	}
	a := r.connect(t, apitest.LLM, "", nil)
	var all []*toolCall
	for path, methods := range document.Paths {
		for _, op := range methods {
			c := &toolCall{name: op.OperationID, input: r.inputOf(t, a, op.OperationID),
				with: map[string]json.RawMessage{}}
			for _, p := range op.Parameters {
				if p.Example != nil && c.input.Properties[p.Name] != nil {
					c.with[p.Name] = p.Example
				}
			}
			whole := op.RequestBody.Content["application/json"].Example
			if c.input.Properties["body"] != nil {
				c.with["body"] = whole
			} else if whole != nil {
				if err := json.Unmarshal(whole, &c.with); err != nil {
					t.Fatal(err)
				}
			}
			c.fill(path, things)
			all = append(all, c)
		}
	}
	slices.SortFunc(all, func(a, b *toolCall) int {
		return strings.Compare(turnOf(a.name), turnOf(b.name))
	})
	return r, all
}

// turnOf is a sort key, so that a tool that deletes something comes after the others.
func turnOf(name string) string {
	for i, first := range []string{"svc_delete_", "svc_stop_", "svc_put_group_start"} {
		if strings.HasPrefix(name, first) {
			return fmt.Sprint("z", 9-i, name)
		}
	}
	return name
}

// inputOf returns the full input schema of a tool.
func (r *rig) inputOf(t *testing.T, a *agent, name string) *jsonschema.Schema {
	t.Helper()
	told, err := a.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "shoal://tools/" + name})
	if err != nil {
		t.Fatal(err)
	}
	var whole struct{ InputSchema *jsonschema.Schema }
	if err := json.Unmarshal([]byte(told.Contents[0].Text), &whole); err != nil {
		t.Fatal(err)
	}
	return whole.InputSchema
}

// things makes one of everything for alice, by the argument that names it. For an argument named
// id, the operation's path tells the kind.
func (r *rig) things(t *testing.T) map[string]string {
	t.Helper()
	job, later := r.run(t, `{"name":"a"}`), r.run(t, `{"name":"b"}`)
	made := map[string]ids.ID{"group": r.group, "scraper": r.scraper, "job": job, "later": later}
	for _, name := range []string{"webhook", "key", "schema", "category", "site", "export",
		"upload"} {
		made[name] = r.IDs.New()
	}
	r.Client.Must(t, client.PutWebhook{ID: made["webhook"], Customer: "alice",
		URL: "https://hook.test/", Secret: []byte("one"), Events: []model.Event{
			model.APIKeyCreated}})
	r.Client.Must(t, client.MintKey{ID: made["key"], Customer: "alice", Prefix: "sk000001",
		Hash: client.Hash{7}, Name: "a key", Scope: model.ScopeUser})
	r.Client.Must(t, client.PutSchema{ID: made["schema"], Customer: "alice", Name: "s", Version: 1,
		Type: "product", Content: []byte(`{}`)})
	r.Client.Must(t, client.PutCategory{ID: made["category"], Customer: "alice", Group: r.group,
		Name: "low", Filters: []byte(`{}`)})
	r.Client.Must(t, client.PutScraper{Create: true, ID: made["upload"], Customer: "alice",
		Group: r.group, Spec: model.Scraper{Name: "u", Type: model.File}})
	r.Client.Must(t, client.AskExport{ID: made["export"], Customer: "alice", Owner: "alice",
		Groups: []ids.ID{r.group}, Request: []byte(`{"format":"csv"}`), Kept: 1_000_000})
	version := r.IDs.New()
	const address = "https://shop.test/"
	err := r.store.PutSiteLinks(t.Context(), version,
		[]rowstore.SiteLink{{URL: address, Hash: rowstore.LinkHash(address)}})
	if err = errors.Join(err, r.store.FinishSite(t.Context(), version, 1)); err != nil {
		t.Fatal(err)
	}
	r.Client.Must(t, client.PutSite{ID: made["site"], Customer: "alice", Scraper: r.scraper,
		Version: version, Links: 1})
	view := r.Client.View()
	view.Notices("alice", func(n *client.Notice) bool { made["notice"] = n.ID; return false })
	view.Deliveries(made["webhook"], func(d *client.Delivery) bool {
		made["delivery"] = d.Notice.ID
		return false
	})
	all := map[string]string{"rowId": `"` + model.RowID{Job: job}.String() + `"`, "token": `"x"`,
		"maxChargeMicros": "1000", "upload": `"` + made["upload"].String() + `"`}
	for argument, name := range map[string]string{"groupId": "group", "groupRef": "group",
		"scraperId": "scraper", "scraperRef": "scraper", "jobId": "job",
		"scraperJobStatusId": "job", "siteId": "site", "categoryId": "category",
		"deliveryId": "delivery", "from": "job", "to": "later"} {
		all[argument] = `"` + made[name].String() + `"`
	}
	for _, kind := range kinds {
		all[kind[0]] = `"` + made[kind[1]].String() + `"`
	}
	return all
}

// kinds tells what an argument named id names, by a part of the operation's path. The first match
// counts.
var kinds = [][2]string{{"/group/", "group"}, {"/exports/", "export"}, {"/key/", "key"},
	{"/notifications/", "notice"}, {"/schema/", "schema"}, {"/webhooks/", "webhook"},
	{"/scraper-job-status/", "job"}, {"/scraper/", "scraper"}, {"/grants/", "key"}}

// fill puts ids of existing things into a call.
func (c *toolCall) fill(path string, things map[string]string) {
	for name := range c.input.Properties {
		thing, known := things[name]
		for _, kind := range kinds {
			if name == "id" && !known && strings.Contains(path, kind[0]) {
				thing, known = things[kind[0]], true
			}
		}
		if name == "scraperId" && strings.HasSuffix(path, "/file") {
			thing = things["upload"]
		}
		before, given := c.with[name]
		isID := len(before) == 26 // with its quotes
		if known && (isID || !given && slices.Contains(c.input.Required, name)) {
			c.with[name] = json.RawMessage(thing)
		}
	}
}
