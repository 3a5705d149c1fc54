package fsm

import (
	"bytes"
	"errors"
	"reflect"
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

// nested returns a value nested in levels arrays.
func nested(levels int) any {
	var value any = "x"
	for range levels {
		value = []any{value}
	}
	return value
}

// replaceLeaves replaces all texts and members of type any behind v.
func replaceLeaves(v reflect.Value, text string, whatever any) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(text)
	case reflect.Interface:
		v.Set(reflect.ValueOf(whatever))
	case reflect.Pointer:
		replaceLeaves(v.Elem(), text, whatever)
	case reflect.Struct:
		for i := range v.NumField() {
			replaceLeaves(v.Field(i), text, whatever)
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			replaceLeaves(v.Index(i), text, whatever)
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			member := reflect.New(v.Type().Elem()).Elem()
			member.Set(v.MapIndex(key))
			replaceLeaves(member, text, whatever)
			v.SetMapIndex(key, member)
		}
	}
}

// hostile returns a payload of a sample's type with such leaves.
func hostile(sample command.Payload, text string, whatever any) command.Payload {
	payload := reflect.New(reflect.TypeOf(sample))
	payload.Elem().Set(reflect.ValueOf(sample))
	replaceLeaves(payload.Elem(), text, whatever)
	return payload.Elem().Interface().(command.Payload)
}

// Whatever a caller, a page or a node sent, an encoded command decodes. Anything else is refused
// before it is proposed.
func TestWhatEncodesDecodes(t *testing.T) {
	for _, levels := range []int{0, 26, 32, codec.CommandLevels, 10_000} {
		for number, sample := range samples(t, New()) {
			m := New()
			payload := hostile(sample, "a\xffb", nested(levels))
			call := &command.Call{Customer: "c\xff", Operation: "o\xff", Key: "k\xff"}
			data, err := m.Encode(ids.ID{1}, 1, payload, call)
			if err != nil {
				if levels <= 32 || !errors.Is(err, fault.New(fault.InvalidRequest, "")) {
					t.Errorf("command %d with %d levels: %v", number, levels, err)
				}
				continue
			}
			if _, _, err := m.decode(m.commands, data); err != nil {
				t.Errorf("command %d with %d levels: %v", number, levels, err)
			}
		}
	}
}

// aim makes a payload refer to records of the bench, so that it changes something.
func aim(b *trials, v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			aim(b, v.Elem())
		}
	case reflect.Slice:
		for i := range v.Len() {
			aim(b, v.Index(i))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			field := v.Field(i)
			switch name := v.Type().Field(i).Name; {
			case name == "Customer" && field.Kind() == reflect.String:
				field.SetString(customer)
			case name == "Group" && field.Type() == reflect.TypeFor[ids.ID]():
				field.Set(reflect.ValueOf(b.group))
			case name == "Scraper" && field.Type() == reflect.TypeFor[ids.ID]():
				field.Set(reflect.ValueOf(b.scraper))
			default:
				aim(b, field)
			}
		}
	}
}

func aimed(b *trials, payload command.Payload) command.Payload {
	at := reflect.New(reflect.TypeOf(payload))
	at.Elem().Set(reflect.ValueOf(payload))
	aim(b, at.Elem())
	return at.Elem().Interface().(command.Payload)
}

// hostileAdmin is an actor for whom the audit trail tells everything a command does.
func hostileAdmin() *state.Actor {
	return &state.Actor{Subject: "s\xff", Admin: true, Customer: customer, Operation: "o\xff",
		Address: "a\xff", Correlation: "c\xff"}
}

// applied proposes a payload as an admin and applies it, unless it is refused with a code. The
// state must survive a snapshot unchanged.
func applied(b *trials, payload command.Payload) (changed bool) {
	b.Helper()
	data, err := b.m.EncodeBy(hostileAdmin(), b.ids.New(), b.now, payload,
		&command.Call{Customer: customer, Operation: "o\xff", Key: "k\xff"})
	if coded := (*fault.Error)(nil); err != nil && !errors.As(err, &coded) {
		b.Fatalf("%T: refused without a code: %v", payload, err)
	}
	if err != nil {
		return false
	}
	b.index++
	result := b.m.Apply(b.index, data)
	if coded := (*fault.Error)(nil); result.Err != nil && !errors.As(result.Err, &coded) {
		b.Fatalf("%T: refused without a code: %v", payload, result.Err)
	}
	kept, again := snapshotOf(b.T, b.m), New()
	if err := again.Restore(bytes.NewReader(kept)); err != nil {
		b.Fatalf("%T: %v", payload, err)
	}
	if !bytes.Equal(kept, snapshotOf(b.T, again)) {
		b.Errorf("%T: the state is another once it was read back", payload)
	}
	return result.Err == nil
}

// A state made by commands with any text survives a snapshot, and so does its audit trail.
func TestHostileCommandsAreKept(t *testing.T) {
	took, trail := 0, 0
	for _, text := range []string{"a\xffb", "a@b.test", strings.Repeat("\xff", 70_000)} {
		for number, sample := range samples(t, New()) {
			b := newTrials(t)
			if number == (command.ActivateVersionPayload{}).Declaration().Number {
				continue // the version is a number
			}
			if applied(b, aimed(b, hostile(sample, text, nested(26)))) {
				took++
			}
			b.view().EachAudit(func(*state.AuditEntry) bool { trail++; return true })
		}
	}
	if took < 60 || trail < 30 {
		t.Errorf("%d commands took effect, %d entries told of them: the rest shows nothing", took,
			trail)
	}
}

// FuzzWhatEncodesApplies takes any payload, proposed by an admin. Either a leader refuses it with a
// code, or replicas apply it without a panic, and the state survives a snapshot.
func FuzzWhatEncodesApplies(f *testing.F) {
	for number, sample := range samples(f, New()) {
		for _, levels := range []int{0, 26, 32} {
			body, err := New().commands.Marshal(hostile(sample, "a\xffb", nested(levels)))
			if err != nil {
				f.Fatal(err)
			}
			f.Add(uint16(number), body, levels == 0)
		}
		f.Add(uint16(number), emptyMap, true)
	}
	f.Fuzz(func(t *testing.T, number uint16, body []byte, aims bool) {
		b := newTrials(t)
		payload, err := b.m.DecodePayload(command.Number(number), body)
		if err != nil {
			return
		}
		if aims {
			payload = aimed(b, payload)
		}
		applied(b, payload)
	})
}

// All nodes refuse an entry alike that an older version committed without a check. It changes
// nothing.
func TestCommittedPoisonIsRefused(t *testing.T) {
	mode, err := cbor.CoreDetEncOptions().EncMode()
	if err != nil {
		t.Fatal(err)
	}
	for name, sample := range map[string]struct {
		text  string
		value any
	}{"deep": {"x", nested(100)}, "not UTF-8": {"a\xffb", "x"}} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			before := len(snapshotOf(t, b.m))
			body, err := mode.Marshal(hostile(samples(t,
				b.m)[command.PutScraperPayload{}.Declaration().Number], sample.text, sample.value))
			if err != nil {
				t.Fatal(err)
			}
			data, err := mode.Marshal(command.Envelope{ID: b.ids.New(),
				Number: command.PutScraperPayload{}.Declaration().Number, Stamp: b.now, Body: body})
			if err != nil {
				t.Fatal(err)
			}
			b.index++
			result := b.m.Apply(b.index, data)
			if !errors.Is(result.Err, fault.New(fault.InvalidRequest, "")) || result.ID.IsZero() {
				t.Errorf("result %+v", result)
			}
			after := snapshotOf(t, b.m)
			if len(after) != before {
				t.Errorf("the state has %d bytes, had %d", len(after), before)
			}
			if err := New().Restore(bytes.NewReader(after)); err != nil {
				t.Error(err)
			}
		})
	}
}

// The deepest scraper that is accepted survives a snapshot. A request's body has at most 32 levels,
// which is less.
func TestTheDeepestCommandSurvivesASnapshot(t *testing.T) {
	for levels := codec.CommandLevels; ; levels-- {
		b := newTrials(t)
		rule := model.PostProcessRule{Params: map[string]any{"mapping": nested(levels)}}
		put := command.PutScraperPayload{Create: true, ID: b.ids.New(), Customer: customer,
			Group: b.group,
			Spec: model.Scraper{Name: "deep", Type: model.SingleProduct,
				PostProcessRules: []model.PostProcessRule{rule}}}
		if _, err := b.m.Encode(b.ids.New(), b.now, put, nil); err != nil {
			continue
		}
		if levels < 32 {
			t.Fatalf("a rule of %d levels is not accepted", levels+1)
		}
		if err := b.do(put); err != nil {
			t.Fatal(err)
		}
		if err := New().Restore(bytes.NewReader(snapshotOf(t, b.m))); err != nil {
			t.Fatal(err)
		}
		return
	}
}

func snapshotOf(t *testing.T, m *FSM) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := m.Snapshot().Write(&out); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// An unknown command, or one of another shape, stops the node. Skipping it would leave the node
// with a different state.
func TestUnknownCommandsStopTheNode(t *testing.T) {
	m := New()
	text, err := m.codec.Marshal("no payload")
	if err != nil {
		t.Fatal(err)
	}
	for _, number := range []command.Number{999, command.PutScraperPayload{}.Declaration().Number} {
		data, err := m.codec.Marshal(command.Envelope{ID: ids.ID{1}, Number: number, Body: text})
		if err != nil {
			t.Fatal(err)
		}
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("command %d was passed over", number)
				}
			}()
			m.Apply(1, data)
		}()
	}
}

// A leader refuses a version that this binary cannot apply. A node that finds it in the log stops,
// because its own snapshots would be unreadable.
func TestUnknownVersionsStopTheNode(t *testing.T) {
	b := newBench(t)
	raise := command.ActivateVersionPayload{Version: command.Newest + 1}
	var refused *fault.Error
	if _, err := b.m.Encode(b.ids.New(), b.now, raise, nil); !errors.As(err, &refused) ||
		refused.Field != "version" {
		t.Errorf("proposed: %v", err)
	}
	body, err := b.m.commands.Marshal(raise)
	if err != nil {
		t.Fatal(err)
	}
	data, err := b.m.commands.Marshal(command.Envelope{ID: b.ids.New(),
		Number: raise.Declaration().Number, Stamp: b.now, Body: body})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if recover() == nil {
			t.Error("the version was passed over")
		}
	}()
	b.m.Apply(b.index+1, data)
}
