package controlplane

import (
	"encoding/hex"
	"flag"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/controlplane/internal/codec"
	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/controlplane/internal/leadership"
	"shoal.dev/shoal/controlplane/internal/membership"
	"shoal.dev/shoal/controlplane/internal/node"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
)

var update = flag.Bool("update", false, "write the golden files anew")

// Nodes of two versions call each other during an upgrade: each reads the other's messages.
func TestGoldenMessages(t *testing.T) {
	t.Parallel()
	call := &command.Call{Customer: "ann", Operation: "run", Key: "k", Request: 7,
		Ticket: ids.ID{3}}
	messages := []struct {
		name    string
		message any
		empty   any
	}{
		{"nothing", &node.Nothing{}, &node.Nothing{}},
		{"proposal", &proposal{ID: ids.ID{1}, Number: command.MintKeyPayload{}.Declaration().Number,
			Body: []byte{0xa0}, Call: call}, &proposal{}},
		{"proposal since 2", &proposal{ID: ids.ID{1}, Number: 11, Body: []byte{0xa0},
			Actor: &client.Actor{Subject: "root", Admin: true, Customer: "ann", Operation: "svc",
				Address: "10.0.0.1", Correlation: "c"}}, &proposal{}},
		{"position", &position{Index: 300}, &position{}},
		{"returned", &returned{Markers: []model.Marker{{Leader: 2, Shard: 3, Number: 4}}},
			&returned{}},
		{"beat", &leadership.Beat{Order: 5,
			Heartbeat: client.Heartbeat{Node: "f-1", Boot: ids.ID{2}, Unread: 6,
				Holding: []client.ShardEpoch{{Shard: 1, Epoch: 9}}}}, &leadership.Beat{}},
		{"leases", &client.Leases{For: 10 * time.Second,
			Hold:    []client.ShardEpoch{{Shard: 1, Epoch: 9, Newest: 70}},
			Release: []client.ShardEpoch{{Shard: 2, Epoch: 8}}}, &client.Leases{}},
		{"nodeStatus", &node.Report{Status: client.Status{Node: "f-1", Roles: []string{"fetcher"},
			Leader: "cp-1", Term: 2,
			Applied: 3, Commands: 4, Shards: 5, Owned: 6, OpenJobs: 7, Out: 8}, LastTerm: 2,
			LastIndex: 9, Silence: 10, Servers: []string{"cp-1"}},
			&node.Report{}},
		{"nodeStatus since 2",
			&node.Report{Clock: 11, Applies: 2, Active: 2,
				Gossips: &membership.Info{Roles: []string{"fetcher"}, Address: "h:1",
					Boot: ids.ID{2}, Leaving: true, Empty: true}}, &node.Report{}},
	}
	const path = "testdata/messages.golden"
	c := codec.New()
	var text strings.Builder
	for _, m := range messages {
		data, err := c.Marshal(m.message)
		if err != nil {
			t.Fatal(err)
		}
		text.WriteString(m.name + " " + hex.EncodeToString(data) + "\n")
	}
	if *update {
		if err := os.WriteFile(path, []byte(text.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	golden, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if text.String() != string(golden) {
		t.Errorf("messages are written as\n%s\nwant\n%s", text.String(), golden)
	}
	for at, line := range strings.Split(strings.TrimSpace(string(golden)), "\n") {
		encoded := line[strings.LastIndex(line, " ")+1:]
		data, err := hex.DecodeString(encoded)
		if err == nil {
			err = c.Unmarshal(data, messages[at].empty)
		}
		if err != nil || !cmp.Equal(messages[at].empty, messages[at].message) {
			t.Errorf("%s is read as %+v, %v", messages[at].name, messages[at].empty, err)
		}
	}
}
