package events_test

import (
	"net/http"
	"testing"
	"time"

	"shoal.dev/shoal/apiserver/internal/apitest"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/ids"
)

// ticket makes a ticket for a caller.
func (r *rig) ticket(t *testing.T, who string) string {
	t.Helper()
	a := r.Call(t, apitest.Scenario{As: who, Do: "POST /api/events/ticket"})
	if a.Status != http.StatusCreated {
		t.Fatalf("%d %s", a.Status, a.Body)
	}
	return a.Text("ticket")
}

func refusal(name, as, ticket string) apitest.Scenario {
	return apitest.Scenario{Name: name, As: as, Do: "GET /api/events/stream?ticket=" + ticket,
		Status: 401, Code: "unauthorized"}
}

// A ticket opens only one stream, of its requester, and only within a minute.
func TestTickets(t *testing.T) {
	r := start(t)
	ticket := r.ticket(t, apitest.Reader)
	s := r.open(t, apitest.Nobody, "?ticket="+ticket)
	s.begin()
	r.Client.Must(t, client.AdjustWallet{Customer: "alice", Entry: r.IDs.New(), Amount: 1})
	s.until("wallet.updated")
	late := r.ticket(t, apitest.User)
	other := r.ticket(t, apitest.User)
	r.Run(t, refusal("again", apitest.Nobody, ticket), refusal("no ticket", apitest.Nobody, "x"),
		refusal("none", apitest.Nobody, ""),
		apitest.Scenario{Name: "elsewhere", Do: "GET /api/wallet?ticket=" + other, Status: 401,
			Code: "unauthorized"},
		apitest.Scenario{Name: "as a bearer", As: other, Do: "GET /api/wallet", Status: 401,
			Code: "unauthorized"},
		refusal("beside a header, which counts", "bad", other))
	r.Clock.Advance(time.Minute)
	r.Run(t, refusal("late", apitest.Nobody, late))
	admin := r.Call(t, apitest.Scenario{As: apitest.Admin, Do: "POST /api/events/ticket",
		Header: map[string]string{"X-Customer-Ref": "bob"}})
	s = r.open(t, apitest.Nobody, "?ticket="+admin.Text("ticket"))
	s.begin()
	r.Client.Must(t, client.AdjustWallet{Customer: "bob", Entry: r.IDs.New(), Amount: 7})
	s.until(`"balanceMicros":7`)
}

// The stream of a ticket ends with its requester's credential, and cannot begin after that.
func TestTicketsEndWithTheirCredential(t *testing.T) {
	r := start(t)
	for name, end := range map[string]func(){
		apitest.Reader: func() {
			id, err := ids.Parse(r.Call(t, apitest.Scenario{As: apitest.Reader,
				Do: "GET /api/key/whoami"}).Text("id"))
			if err != nil {
				t.Fatal(err)
			}
			r.Client.Must(t, client.RevokeKey{Customer: "alice", ID: id})
		},
		apitest.SignIn: func() { r.Clock.Advance(2 * time.Hour) },
		apitest.Other: func() {
			r.Client.Must(t, client.BlockCustomer{Customer: "bob", By: "root"})
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := r.open(t, apitest.Nobody, "?ticket="+r.ticket(t, name))
			unused := r.ticket(t, name)
			s.begin()
			end()
			refused := r.Call(t, apitest.Scenario{Do: "GET /api/events/stream?ticket=" + unused})
			if refused.Status != 401 && refused.Status != 403 {
				t.Errorf("%d %s", refused.Status, refused.Body)
			}
			for f, open := s.next(); open; f, open = s.next() {
				if f.event != "" {
					t.Errorf("it still hears %+v", f)
				}
			}
		})
	}
}
