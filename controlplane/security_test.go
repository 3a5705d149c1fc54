package controlplane

import (
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"shoal.dev/shoal/controlplane/identity"
	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/pkg/fault"
)

// The table of SECURITY.md says which calls a certificate of each role may make, and which commands
// it may propose.
func TestSecurityDocumentNamesWhatCertificatesMay(t *testing.T) {
	t.Parallel()
	document, err := os.ReadFile("../SECURITY.md")
	if err != nil {
		t.Fatal(err)
	}
	s, err := New(testConfig(t, t.TempDir()))
	if err != nil {
		t.Fatal(err)
	}
	empty := []byte{0xa0} // a CBOR map
	methods := s.methods()
	const most = 1000 // command numbers
	for _, role := range identity.Roles() {
		as := identity.Peer{Cluster: "test", Node: "a", Roles: []string{role}}
		var calls, proposes []string
		for _, name := range slices.Sorted(maps.Keys(methods)) {
			_, err := methods[name](t.Context(), as, empty)
			if fault.CodeOf(err) != fault.ScopeRejected ||
				!strings.Contains(err.Error(), "needs the role") {
				calls = append(calls, "`"+name+"`")
			}
		}
		for number := range command.Number(most) {
			payload, err := s.node.FSM().DecodePayload(number, empty)
			if err != nil {
				continue // there is none
			}
			if register, ok := payload.(command.RegisterNodePayload); ok {
				register.Name = as.Node
				payload = register
			}
			if mayNotPropose(as, payload) == "" {
				name := strings.TrimSuffix(reflect.TypeOf(payload).Name(), "Payload")
				proposes = append(proposes, "`"+name+"`")
			}
		}
		line := fmt.Sprintf("| %s | %s | %s |\n", role, strings.Join(calls, " "),
			strings.Join(proposes, " "))
		if !strings.Contains(string(document), line) {
			t.Errorf("SECURITY.md lacks the line\n%s", line)
		}
	}
}
