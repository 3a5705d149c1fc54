package operation

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"strings"
	"testing"

	"shoal.dev/shoal/apiserver/internal/auth"
)

// A call whose answer breaks off was logged as a success. A second line says why it broke off,
// unless the client has gone.
func TestCutOffDownloadIsLogged(t *testing.T) {
	t.Parallel()
	part := strings.Repeat("x", 2*downloadBuffer)
	for name, test := range map[string]struct {
		sent  string
		err   error
		level string
	}{
		"whole":    {part, nil, "DEBUG"},
		"removed":  {part, errors.New("rows were removed"), "WARN"},
		"left":     {part, io.ErrClosedPipe, "DEBUG"},
		"stopping": {part, context.Canceled, "DEBUG"},
		"refused":  {"", errors.New("no rows"), "DEBUG"}, // the call's own line says it
	} {
		t.Run(name, func(t *testing.T) {
			r := serve(t, nil, Define(Declaration{ID: "svc_file", Summary: "s",
				Routes: Routes("GET /file"), Access: auth.Read},
				func(context.Context, *Caller, *struct{}) (Download, error) {
					return Download{Write: func(_ context.Context, w io.Writer) error {
						_, err := io.WriteString(w, test.sent)
						return errors.Join(err, test.err)
					}}, nil
				}))
			var logged bytes.Buffer
			r.chain.Logger = slog.New(slog.NewTextHandler(&logged,
				&slog.HandlerOptions{Level: slog.LevelDebug}))
			conn, err := r.l.Dial()
			if err == nil {
				_, err = io.WriteString(conn, head("GET /file", "Connection: close"))
			}
			if err == nil {
				_, _ = io.Copy(io.Discard, conn) // how it ends is not the question
				err = errors.Join(conn.Close(), r.chain.Wait(t.Context()))
			}
			if err != nil {
				t.Fatal(err)
			}
			line := "level=" + test.level + ` msg="download ended" operation=svc_file`
			if !strings.Contains(logged.String(), line) {
				t.Errorf("no %q in\n%s", line, &logged)
			}
		})
	}
}
