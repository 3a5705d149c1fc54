package archive

import (
	"encoding/hex"
	"flag"
	"fmt"
	"os"
	"testing"

	"shoal.dev/shoal/controlplane/internal/codec/codectest"
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/ids"
)

var update = flag.Bool("update", false, "write the golden file anew")

// The hashed form of an entry is a promise (docs/operations/audit-trail.md): other people's
// programs verify a trail years later. So the golden file only ever grows by lines. A test of the
// command line's own program uses it, too.
func TestHashesOfTheTrailStay(t *testing.T) {
	const name = "testdata/audit.golden"
	full := &state.AuditEntry{}
	codectest.Fill(full)
	least := &state.AuditEntry{Generation: ids.ID{1}, Number: 1, Index: 2, At: 3, Action: "x"}
	text := ""
	for _, e := range []*state.AuditEntry{full, least} {
		record, err := EncodeAudit(e)
		if err != nil {
			t.Fatal(err)
		}
		text += fmt.Sprintf("%s %s\n", hex.EncodeToString(record.Body),
			hex.EncodeToString(record.Hash[:]))
	}
	if *update {
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	golden, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if string(golden) != text {
		t.Errorf("entries are hashed as\n%s", text)
	}
}
