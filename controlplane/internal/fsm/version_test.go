package fsm

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"shoal.dev/shoal/controlplane/internal/codec/codectest"
	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
)

// TestReleasedVersionsStayAsTheyAre compares commands and their payloads with those of each
// released version.
func TestReleasedVersionsStayAsTheyAre(t *testing.T) {
	m := New()
	codectest.CheckReleased(t, func(version int) (got []string) {
		for number, payload := range samples(t, m) {
			if int(payload.Declaration().Since) <= version {
				got = append(got, fmt.Sprintf("command %d %T", number, payload))
				got = append(got, codectest.Members(reflect.TypeOf(payload), version)...)
			}
		}
		return got
	})
}

// founded makes a state machine with a cluster of a version.
func founded(t *testing.T, version uint32) *FSM {
	t.Helper()
	m := New()
	data, err := m.Encode(ids.ID{1}, 1,
		command.CreateClusterPayload{ID: ids.ID{1}, Shards: 1, Version: version}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Apply(1, data).Err; err != nil {
		t.Fatal(err)
	}
	if active, known := m.Store().ClusterVersion(); !known || active != max(version, 1) {
		t.Fatalf("version %d is active, want %d", active, version)
	}
	return m
}

// TestMembersWaitForTheirVersion: until a version is active, a leader appends none of its members.
// Every node, even an older one, then does what the entry says.
func TestMembersWaitForTheirVersion(t *testing.T) {
	m := founded(t, 0)
	payload := command.LaunchRunPayload{Links: 7, NewScraper: &command.PutScraperPayload{
		Customer: "ann", Cap: &command.PlanCap{Most: 3}}}
	capped := func() bool {
		t.Helper()
		call := &command.Call{Customer: "ann", Body: 5}
		data, err := m.Encode(ids.ID{2}, 2, payload, call)
		if err != nil {
			t.Fatal(err)
		}
		env, decoded, err := m.decode(m.commands, data)
		if err != nil {
			t.Fatal(err)
		}
		launch := decoded.(command.LaunchRunPayload)
		if launch.Links != 7 || launch.NewScraper.Customer != "ann" {
			t.Errorf("%+v", launch)
		}
		has := launch.NewScraper.Cap != nil
		if env.Call.Customer != "ann" || env.Call.Body != 0 != has || call.Body != 5 {
			t.Errorf("the call is %+v, and the caller's %+v", env.Call, call)
		}
		return has
	}
	if capped() {
		t.Error("version 1 is active, and the member is proposed")
	}
	if payload.NewScraper.Cap == nil {
		t.Error("the caller's payload was changed")
	}
	data, err := m.Encode(ids.ID{3}, 3, command.ActivateVersionPayload{Version: command.Newest},
		nil)
	if err != nil {
		t.Fatal(err)
	}
	m.Apply(2, data)
	if !capped() {
		t.Error("the version is active, and the member is left out")
	}
	lower, err := m.Encode(ids.ID{4}, 4, command.ActivateVersionPayload{Version: 1}, nil)
	if err != nil {
		t.Fatal(err)
	}
	m.Apply(3, lower)
	if active := m.Store().View().ClusterVersion(); active != command.Newest {
		t.Errorf("the version fell to %d", active)
	}
}

// TestCommandsWaitForTheirVersion: every command newer than the active version is refused, so that
// the caller tries again, and nothing is appended.
func TestCommandsWaitForTheirVersion(t *testing.T) {
	m := founded(t, 0)
	for _, payload := range samples(t, m) {
		_, err := m.Encode(ids.ID{2}, 2, payload, nil)
		_, forwarded := m.EncodePayload(payload)
		_, raises := payload.(command.ActivateVersionPayload)
		young := command.Since(payload) > 1 && !raises
		if refused := fault.CodeOf(err) == fault.Unavailable; refused != young {
			t.Errorf("%T: %v, want refused: %v", payload, err, young)
		}
		if refused := fault.CodeOf(forwarded) == fault.Unavailable; refused != young {
			t.Errorf("%T, forwarded: %v, want refused: %v", payload, forwarded, young)
		}
	}
}

// TestNodesOfBeforeCanReadWhatIsAppended: older nodes read 32 levels, and a deeper entry would stop
// each of them for good.
func TestNodesOfBeforeCanReadWhatIsAppended(t *testing.T) {
	appended := 0
	for levels := range 70 {
		m := founded(t, 0)
		for number, sample := range samples(t, m) {
			if !m.registry[number].free || sample.Declaration().Since > 1 {
				continue
			}
			payload := ofVersionOne(hostile(sample, "x", nested(levels)))
			data, err := m.Encode(ids.ID{9}, 2, payload, nil)
			if err != nil {
				continue
			}
			appended++
			if _, _, err := m.decode(m.first, data); err != nil {
				t.Errorf("%T with %d levels is appended: %v", sample, levels, err)
			}
			if _, err := m.EncodePayload(payload); err != nil {
				t.Errorf("%T with %d levels is appended, and not forwarded: %v", sample, levels,
					err)
			}
		}
	}
	if appended == 0 {
		t.Error("nothing is appended at all")
	}
}

// ofVersionOne returns a payload without what a cluster of version 1 refuses.
func ofVersionOne(payload command.Payload) command.Payload {
	payload = command.Trim(payload, 1)
	plain := func(spec *model.Scraper) {
		config := *spec.Config
		config.RetentionCount = nil
		spec.Config, spec.Schedule = &config, ""
	}
	switch p := payload.(type) {
	case command.PutScraperPayload:
		plain(&p.Spec)
		return p
	case command.LaunchRunPayload:
		plain(&p.NewScraper.Spec)
		return p
	}
	return payload
}

// TestSnapshotsAreOfTheActiveVersion: an older binary refuses the state of an activated cluster,
// and reads any other.
func TestSnapshotsAreOfTheActiveVersion(t *testing.T) {
	before, after := written(t, founded(t, 0).Snapshot()),
		written(t, founded(t, command.Newest).Snapshot())
	for text, version := range map[string]int{before: 1, after: int(command.Newest)} {
		restored := New()
		if err := restored.Restore(strings.NewReader(text)); err != nil {
			t.Fatal(err)
		}
		if active, _ := restored.Store().ClusterVersion(); int(active) != version {
			t.Errorf("version %d is restored, want %d", active, version)
		}
		var header struct {
			Version int `cbor:"1,keyasint"`
		}
		_, decoder := New().codec.Modes()
		if err := decoder.NewDecoder(strings.NewReader(text)).Decode(&header); err != nil ||
			header.Version != version {
			t.Errorf("the snapshot's version is %d %v, want %d", header.Version, err, version)
		}
	}
}
