package auth

import (
	"context"
	"log/slog"
	"net/netip"
	"testing"
	"time"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/controlplane/client/clienttest"
	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/ids"
)

// meanwhile calls during before each proposal.
type meanwhile struct {
	*clienttest.Client
	during func()
}

func (m *meanwhile) Propose(ctx context.Context, payload client.Payload, call *client.Call) (any,
	error) {
	m.during()
	return m.Client.Propose(ctx, payload, call)
}

// A use is shown, and reported again, until the control plane has it. A failed flush loses none,
// and a flush does not forget what happens meanwhile.
func TestUsesStayUntilRecorded(t *testing.T) {
	manual := clock.NewManual(now())
	fake := clienttest.New(t, manual)
	fake.Must(t, client.OpenCustomer{Customer: "a", Entry: ids.ID{1}})
	key := fake.Must(t, client.MintKey{ID: ids.ID{2}, Customer: "a",
		Prefix: "abcdefg"}).(client.Key)
	fake.Must(t, client.CreateAccount{ID: ids.ID{3}, Email: "b@shop.example", Customer: "b",
		Password: "hash", Entry: ids.ID{4}})
	session := fake.Must(t, client.OpenSession{Account: ids.ID{3}, Password: "hash",
		Hash: client.Hash{5}}).(client.Session)
	between := &meanwhile{Client: fake, during: func() {}}
	touches := NewTouches(between, manual, slog.New(slog.DiscardHandler))
	var newest int64
	use := func() {
		manual.Advance(time.Hour)
		touches.touch(key.ID, netip.Addr{})
		touches.touchSession(session.Hash)
		newest = manual.Now().UnixMilli()
	}
	flush := func(when string, ofKey, ofSession int64) {
		t.Helper()
		touches.flush(t.Context())
		view := fake.View()
		if k, s := view.Key(key.ID), view.Session(session.Hash); k.LastUsedAt != ofKey ||
			s.UsedAt != ofSession {
			t.Errorf("%s: %d and %d are stored, want %d and %d", when, k.LastUsedAt, s.UsedAt,
				ofKey, ofSession)
		}
		if shown := touches.LastUse(view.Key(key.ID)).At; shown != newest {
			t.Errorf("%s: %d is shown, want %d", when, shown, newest)
		}
	}
	use()
	manual.Advance(-time.Minute) // the later time wins
	touches.touch(key.ID, netip.Addr{})
	touches.touchSession(session.Hash)
	manual.Advance(time.Minute)
	fake.Fail(clienttest.Down())
	flush("without a leader", 0, session.UsedAt)
	fake.Fail(nil)
	between.during = func() {
		if shown := touches.LastUse(fake.View().Key(key.ID)).At; shown != newest {
			t.Errorf("during a flush %d is shown, want %d", shown, newest)
		}
	}
	flush("with a leader again", newest, newest)
	use()
	before := newest
	between.during = use // once for keys, once for sessions
	flush("used during the flush", before, before+time.Hour.Milliseconds())
	between.during = func() {}
	flush("a minute later", newest, newest)
	if len(touches.keys)+len(touches.sessions) > 0 {
		t.Errorf("kept: %v, %v", touches.keys, touches.sessions)
	}
}
