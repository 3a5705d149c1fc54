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
	"shoal.dev/shoal/pkg/work"
)

// The table of SECURITY.md lists the calls and commands that a certificate of each role allows.
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
				continue // no such command
			}
			if register, ok := payload.(command.RegisterNodePayload); ok {
				register.Name = as.Node
				payload = register
			}
			if exchange, ok := payload.(command.ExchangeWorkPayload); ok {
				exchange.Node = as.Node
				exchange.Wants = kindsOf(role)
				payload = exchange
			}
			if enqueue, ok := payload.(command.EnqueueWorkPayload); ok {
				enqueue.Kind = kindsOf(role)[0].Kind
				payload = enqueue
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

// TestWhatACertificateIsGoodFor checks what SECURITY.md says of stolen certificates against
// mayNotPropose.
func TestWhatACertificateIsGoodFor(t *testing.T) {
	t.Parallel()
	customers := []command.Payload{command.OpenCustomerPayload{}, command.RemoveCustomerPayload{},
		command.BlockCustomerPayload{}, command.UnblockCustomerPayload{}}
	keys := []command.Payload{command.MintKeyPayload{}, command.RevokeKeyPayload{}}
	scrapers := []command.Payload{command.PutScraperPayload{}, command.DeleteScraperPayload{},
		command.LaunchRunPayload{}, command.StopRunPayload{}}
	money := []command.Payload{command.AdjustWalletPayload{}, command.PutPricesPayload{},
		command.SetPricesPayload{},
		command.OpenTopUpPayload{}, command.PayTopUpPayload{}, command.ReverseTopUpPayload{}}
	callers := slices.Concat(customers, keys, scrapers, money)
	settling := []command.Payload{command.SettlePayload{}}
	work := []command.Payload{command.EndImportPayload{}, command.AdvanceReExtractPayload{},
		command.EndReExtractPayload{}, command.EndCataloguePayload{}, command.ProtectGroupPayload{},
		command.FixKeyPayload{}, command.ForgetRemovalsPayload{}}
	leaders := []command.Payload{command.CloseRunPayload{}}
	for role, can := range map[string][]command.Payload{
		identity.Fetcher: nil, identity.Ingest: work, identity.Billing: settling,
		identity.APIServer: callers, identity.ControlPlane: nil,
	} {
		from := identity.Peer{Cluster: "test", Node: "a", Roles: []string{role}}
		for _, payload := range slices.Concat(callers, settling, work, leaders) {
			want := slices.ContainsFunc(can, func(p command.Payload) bool {
				return reflect.TypeOf(p) == reflect.TypeOf(payload)
			})
			if why := mayNotPropose(from, payload); (why == "") != want {
				t.Errorf("%s proposes %T: %q, want allowed: %v", role, payload, why, want)
			}
		}
	}
}

// TestALeaderThatDoesNotKnowACommand: during an upgrade, an older leader does not know a command.
// The caller may ask the next leader.
func TestALeaderThatDoesNotKnowACommand(t *testing.T) {
	t.Parallel()
	s, err := New(testConfig(t, t.TempDir()))
	if err != nil {
		t.Fatal(err)
	}
	from := identity.Peer{Cluster: "test", Node: "a", Roles: identity.Roles()}
	for what, p := range map[string]proposal{
		"a command of a later version":        {Number: 65_000, Body: []byte{0xa0}},
		"a known command with other contents": {Number: 1, Body: []byte{0x01}},
	} {
		_, err := s.servePropose(t.Context(), from, p)
		if fault.CodeOf(err) != fault.Unavailable { // 503, never a fault of the caller
			t.Errorf("%s: %v", what, err)
		}
	}
}

// kindsOf returns the kinds of work of a role, or of another role if it has none.
func kindsOf(role string) []command.WorkWant {
	var own []command.WorkWant
	for _, kind := range work.Kinds() {
		if work.Role(kind) == role {
			own = append(own, command.WorkWant{Kind: kind})
		}
	}
	if len(own) == 0 {
		own = append(own, command.WorkWant{Kind: work.Expire})
	}
	return own
}

// TestWorkIsDoneInOnesOwnName: a certificate allows only work of its roles, for its own node.
func TestWorkIsDoneInOnesOwnName(t *testing.T) {
	t.Parallel()
	from := identity.Peer{Cluster: "test", Node: "a", Roles: []string{identity.Ingest}}
	wants := func(kind string) []command.WorkWant { return []command.WorkWant{{Kind: kind}} }
	for _, c := range []struct {
		payload command.Payload
		allowed bool
	}{
		{command.ExchangeWorkPayload{Node: "a", Wants: wants(work.Expire)}, true},
		{command.ExchangeWorkPayload{Node: "b", Wants: wants(work.Expire)}, false},
		{command.ExchangeWorkPayload{Node: "a", Wants: wants(work.Recount)}, false},
		{command.ExchangeWorkPayload{Node: "a", Wants: wants("unknown")}, false},
		{command.EnqueueWorkPayload{Kind: work.Expire}, true},
		{command.EnqueueWorkPayload{Kind: work.Orphans}, false},
		{command.EnqueueWorkPayload{Kind: "unknown"}, false},
	} {
		if why := mayNotPropose(from, c.payload); (why == "") != c.allowed {
			t.Errorf("%+v: %q, want allowed: %v", c.payload, why, c.allowed)
		}
	}
	from.Roles = []string{identity.Fetcher}
	if mayNotPropose(from, command.ExchangeWorkPayload{Node: "a"}) == "" {
		t.Error("a fetcher has a turn at the table of work")
	}
}
