package trail

import (
	"encoding/hex"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/fxamacker/cbor/v2"
	"github.com/google/go-cmp/cmp"

	"shoal.dev/shoal/pkg/ids"
)

// Entries of the server, with every member set and with none, have the same hashes here.
func TestEntriesAreHashedAsTheServerDoes(t *testing.T) {
	golden, err := os.ReadFile("../../../../controlplane/internal/archive/testdata/audit.golden")
	if err != nil {
		t.Fatal(err)
	}
	strict, err := cbor.DecOptions{ExtraReturnErrors: cbor.ExtraDecErrorUnknownField}.DecMode()
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(golden)), "\n")
	if len(lines) < 2 {
		t.Fatalf("%d lines", len(lines))
	}
	for _, text := range lines {
		body, sum, _ := strings.Cut(text, " ")
		data, err := hex.DecodeString(body)
		if err != nil {
			t.Fatal(err)
		}
		var e Entry
		if err := strict.Unmarshal(data, &e); err != nil {
			t.Fatal(err)
		}
		if got := e.Sum().String(); got != sum {
			t.Errorf("%+v has the hash %s, want %s", e, got, sum)
		}
		// and so through the API
		if again := throughTheAPI(t, &e); !cmp.Equal(*again, e) {
			t.Error(cmp.Diff(*again, e))
		}
	}
}

// throughTheAPI returns an entry after a round trip through the API's JSON.
func throughTheAPI(t *testing.T, e *Entry) *Entry {
	t.Helper()
	l := line{Number: e.Number, At: time.UnixMilli(e.At), Action: e.Action,
		CustomerUniqueRef: e.Customer, MoreChanges: e.More, Count: e.Count,
		LeftBehind: e.Restored, Generation: e.Generation, Index: e.Index, Hash: e.Stated,
		PreviousHash: e.Before, Actor: lineActor{Subject: e.Actor.Subject,
			Admin: e.Actor.Admin, CustomerUniqueRef: e.Actor.Customer,
			Operation: e.Actor.Operation, Address: e.Actor.Address,
			CorrelationID: e.Actor.Correlation}}
	if e.FailedFrom != 0 {
		at := time.UnixMilli(e.FailedFrom)
		l.FailedFrom = &at
	}
	if e.Actor.Key != (ids.ID{}) {
		l.Actor.KeyID = &e.Actor.Key
	}
	for i := range e.Changes {
		c := &e.Changes[i]
		c.Before, c.After = `{"a":"\u003c"}`, "" // records are JSON
		l.Changes = append(l.Changes, lineChange{Record: c.Table + " " + c.Record,
			Before: json.RawMessage(c.Before), After: json.RawMessage("null")})
	}
	text, err := json.MarshalIndent(l, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	read, err := Read(text)
	if err != nil {
		t.Fatal(err)
	}
	return read
}

func TestEntriesThatAreNone(t *testing.T) {
	for _, text := range []string{"", "number,at", `{"number":1,"more":2}`, `{"hash":"12"}`,
		`{"hash":"` + strings.Repeat("x", 64) + `"}`, `[1]`} {
		if e, err := Read([]byte(text)); err == nil {
			t.Errorf("%s is %+v", text, e)
		}
	}
}
