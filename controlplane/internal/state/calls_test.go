package state

import (
	"testing"

	"pgregory.net/rapid"

	"shoal.dev/shoal/controlplane/internal/codec"
	"shoal.dev/shoal/pkg/ids"
)

// TestClaimsTakeNoMoreThanTheySay: Claim.Bytes bounds the real size, since a customer's limit is
// based on it.
func TestClaimsTakeNoMoreThanTheySay(t *testing.T) {
	id := rapid.Custom(func(t *rapid.T) (id ids.ID) {
		copy(id[:], rapid.SliceOfN(rapid.Byte(), len(id), len(id)).Draw(t, "id"))
		return id
	})
	rapid.Check(t, func(t *rapid.T) {
		c := Claim{Customer: rapid.StringN(1, 40, 128).Draw(t, "customer"),
			Name: nameCall("o", "k"), Request: rapid.Uint64().Draw(t, "request"),
			Expires: rapid.Int64Min(0).Draw(t, "expires")}
		switch rapid.IntRange(0, 3).Draw(t, "kind") {
		case 0:
			c.List, c.Boot, c.Ticket = id.Draw(t, "list"), id.Draw(t, "boot"), id.Draw(t, "ticket")
			c.Node = rapid.StringN(1, 60, 200).Draw(t, "node")
		case 1:
			c.Done, c.Result = true, make([]byte, rapid.IntRange(0, 70_000).Draw(t, "result"))
		case 2:
			c.Done, c.Fault = true, make([]byte, rapid.IntRange(0, 500).Draw(t, "fault"))
		case 3:
			c.Done, c.Kept = true, make([]byte, rapid.IntRange(0, 500).Draw(t, "kept"))
		}
		if c.Done {
			c.Number = rapid.Uint16Range(1, 255).Draw(t, "number")
		}
		data, err := codec.New().Marshal(claimsTable.encoded(&c, claimsTable.empty()))
		if err != nil {
			t.Fatal(err)
		}
		if len(data) > c.Bytes() {
			t.Fatalf("a claim takes %d bytes, and says %d", len(data), c.Bytes())
		}
	})
}
