package operation

import (
	"context"
	"io"
	"net/http"
	"runtime"
	"testing"
	"weak"

	"shoal.dev/shoal/apiserver/internal/auth"
	"shoal.dev/shoal/controlplane/client"
)

// viewing gives each caller a state of its own, and can tell whether anyone still holds it.
type viewing struct {
	everyone
	newest weak.Pointer[client.View]
}

func (v *viewing) Authenticate(ctx context.Context, authorization, customer string) (auth.Principal,
	*client.View, error) {
	p, _, err := v.everyone.Authenticate(ctx, authorization, customer)
	view := &client.View{}
	v.newest = weak.Make(view)
	return p, view, err
}

// state says what has become of the newest state.
func (v *viewing) state() string {
	for range 100 {
		if v.newest.Value() == nil {
			return "gone"
		}
		runtime.GC()
	}
	return "held"
}

// A stream lasts for hours. The state that its handler saw does not stay in memory that long.
func TestLongAnswersHoldNoState(t *testing.T) {
	v := &viewing{}
	declared := func(path string) Declaration {
		return Declaration{ID: "svc_" + path, Routes: Routes("GET /" + path), Summary: "s",
			Access: auth.Read}
	}
	seen := func(from *Caller) {
		if from.View == nil {
			t.Error("the handler saw no state")
		}
	}
	r := serve(t, nil,
		Define(declared("events"), func(_ context.Context, from *Caller, _ *struct{}) (Events,
			error) {
			seen(from)
			return func(_ context.Context, to *EventWriter) error {
				return to.Send("state", from.Customer, v.state())
			}, nil
		}),
		Define(declared("download"), func(_ context.Context, from *Caller, _ *struct{}) (Download,
			error) {
			seen(from)
			return Download{Write: func(_ context.Context, w io.Writer) error {
				_, err := io.WriteString(w, from.Customer+" "+v.state())
				return err
			}}, nil
		}),
		Define(declared("served"), func(_ context.Context, from *Caller, _ *struct{}) (Served,
			error) {
			seen(from)
			return Served{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				_, _ = io.WriteString(w, from.Customer+" "+v.state()) // into memory
			})}, nil
		}))
	r.chain.Auth = v
	for _, path := range []string{"events", "download", "served"} {
		r.expect(head("GET /"+path), 200, "gone")
	}
}
