package commands

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"shoal.dev/shoal/cmd/shoal/internal/datadir"
	"shoal.dev/shoal/cmd/shoal/internal/terminal"
)

// healthTimeout bounds the call; a process answers within 2 s.
const healthTimeout = 3 * time.Second

// Health is 'shoal health', which asks one process whether it is ready.
type Health struct {
	OpsListen string `help:"The --ops-listen address of the process." default:"127.0.0.1:9100" placeholder:"HOST:PORT"`
}

// Help returns the command's help text.
func (*Health) Help() string {
	return `It calls /api/readyz and needs no credential, for container images without a shell. The exit code is 0 if the process is
ready, 1 if it is not, 5 if it does not answer.`
}

// Run asks once.
func (c *Health) Run(ctx context.Context, t *terminal.Terminal) error {
	ctx, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet,
		"http://"+datadir.Reachable(c.OpsListen)+"/api/readyz", nil)
	if err != nil {
		return terminal.Usagef("--ops-listen: %v", err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return &terminal.ExitError{Code: terminal.ExitNoAccess, Text: err.Error()}
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(response.Body, 4<<10))
	if err != nil {
		return &terminal.ExitError{Code: terminal.ExitNoAccess, Text: err.Error()}
	}
	said := strings.TrimSpace(string(body))
	if response.StatusCode != http.StatusOK {
		return &terminal.ExitError{Code: terminal.ExitFailed,
			Text: fmt.Sprintf("%s: %s", response.Status, said)}
	}
	_, err = fmt.Fprintln(t.Out, said)
	return err
}
