package fsm

import (
	"reflect"
	"slices"
	"strconv"
	"testing"

	"shoal.dev/shoal/controlplane/internal/codec/codectest"
	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
)

// dispensable lists the members that older versions leave out, with the reason why that is right.
var dispensable = map[string]string{
	"CreateClusterPayload.Version":           "a cluster is founded with all members",
	"CreateClusterPayload.Prices.Off":        "a cluster is founded with all members",
	"TouchKeysPayload.Keys.Address":          "the address is then not known, as before",
	"RenewClaimsPayload.Ticket":              "all claims of the node's start are renewed, as before",
	"PutGroupPayload.Filled":                 "answers are kept whole (state.BriefSince)",
	"PutGroupPayload.Left":                   "the members are those that the proposer read, as before",
	"PutGroupPayload.Cap":                    "no plan bounds anything before plans",
	"PutScraperPayload.Cap":                  "no plan bounds anything before plans",
	"LaunchRunPayload.NewScraper.Cap":        "no plan bounds anything before plans",
	"LaunchRunPayload.Trial.Same":            "the trial is not shared, as before",
	"LaunchRunPayload.Trial.Joins":           "the trial is launched of its own, as before",
	"LaunchRunPayload.Trial.Recipe.KeepDays": "no trial keeps bodies",
	"PreviewDeletePayload.Deletion.Rows":     "only previews of version 2 count rows",
	"PreviewDeletePayload.Deletion.Run":      "only previews of version 2 are of runs",
	"CloseRunPayload.Unjudged":               "no group has quarantine before version 2",
	"DeleteSchemaPayload.Deletion.Rows":      "a schema has no rows",
	"DeleteSchemaPayload.Deletion.Run":       "a schema is no run",
	"ExtendWindowPayload.Runs.Priced":        "no prices are of domains before version 2",
}

// TestNewMembersAreRefusedOrDispensable: until its version is active, a payload with a new member
// is refused, unless the payload without it is right, too.
func TestNewMembersAreRefusedOrDispensable(t *testing.T) {
	listed := map[string]bool{}
	for _, sample := range samples(t, New()) {
		if sample.Declaration().Since > 1 {
			continue // refused with all members
		}
		typ := reflect.TypeOf(sample)
		eachNewMember(typ, typ.Name(), nil, func(name string, since uint32, set setter) {
			payload := reflect.New(typ).Elem()
			set(payload)
			needs := command.Since(payload.Interface().(command.Payload))
			_, spared := dispensable[name]
			if listed[name] = true; needs >= since == spared {
				t.Errorf("%s: is refused below version %d: %v; is listed as dispensable: %v", name,
					since, needs >= since, spared)
			}
		})
	}
	for name := range dispensable {
		if !listed[name] {
			t.Errorf("%s: is listed, and is no member", name)
		}
	}
}

// setter sets a member in a settable value.
type setter func(v reflect.Value)

// eachNewMember visits the members of a type that version 1 lacks.
func eachNewMember(t reflect.Type, name string, within []reflect.Type,
	visit func(name string, since uint32, set setter)) {
	inner := func(t reflect.Type, name string, reach func(reflect.Value) reflect.Value) {
		eachNewMember(t, name, within, func(name string, since uint32, set setter) {
			visit(name, since, func(v reflect.Value) { set(reach(v)) })
		})
	}
	switch t.Kind() {
	case reflect.Pointer:
		inner(t.Elem(), name, func(v reflect.Value) reflect.Value {
			v.Set(reflect.New(t.Elem()))
			return v.Elem()
		})
	case reflect.Slice:
		inner(t.Elem(), name, func(v reflect.Value) reflect.Value {
			v.Set(reflect.MakeSlice(t, 1, 1))
			return v.Index(0)
		})
	case reflect.Struct:
		if slices.Contains(within, t) {
			return
		}
		within = append(slices.Clip(within), t)
		for i := range t.NumField() {
			field := t.Field(i)
			name := name + "." + field.Name
			since, err := strconv.ParseUint(field.Tag.Get("since"), 10, 32)
			switch {
			case !field.IsExported():
			case err == nil:
				visit(name, uint32(since), func(v reflect.Value) {
					codectest.Fill(v.Field(i).Addr().Interface())
				})
			default:
				inner(field.Type, name, func(v reflect.Value) reflect.Value { return v.Field(i) })
			}
		}
	}
}

// TestRetentionWaitsForItsVersion: version 1 has the member, and refuses to set it.
func TestRetentionWaitsForItsVersion(t *testing.T) {
	one := 1
	put := command.PutScraperPayload{Spec: model.Scraper{
		Config: &model.ScraperConfig{RetentionCount: &one}}}
	for _, payload := range []command.Payload{put, command.LaunchRunPayload{NewScraper: &put}} {
		if since := command.Since(payload); since != command.RetentionSince {
			t.Errorf("%T is accepted from version %d on", payload, since)
		}
	}
}

// TestRunsOfVersionOneMayBeReruns: a run launched before the activation does not say whether it is
// one. One launched afterwards says it, also in a cluster that never had version 1.
func TestRunsOfVersionOneMayBeReruns(t *testing.T) {
	m := founded(t, 0)
	data, err := m.Encode(ids.ID{3}, 3_000, command.ActivateVersionPayload{Version: command.Newest},
		nil)
	if err != nil {
		t.Fatal(err)
	}
	m.Apply(2, data)
	v, young := m.Store().View(), founded(t, command.Newest).Store().View()
	before, after := &state.Job{Queued: 2_999}, &state.Job{Queued: 3_000}
	if !v.MayBeRest(before) || v.MayBeRest(after) || young.MayBeRest(before) ||
		!v.MayBeRest(&state.Job{Queued: 3_000, Rest: true}) {
		t.Error("what says whether runs are reruns is wrong")
	}
}
