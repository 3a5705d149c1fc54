package agents

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"shoal.dev/shoal/apiserver/internal/operation"
	"shoal.dev/shoal/pkg/fault"
)

// maxWait is how long a call waits for a run (decision 34).
const maxWait = 55 * time.Second

// running is the state of an unfinished run in its events.
const running = "RUNNING"

// maxEvent is the size limit of an event, bytes.
const maxEvent = 64 << 10

var errSilent = fault.New(fault.Unavailable, "nothing was told of the run in time: call again")

// wait follows a stream of events to its end, or until maxWait, and returns the last event. If the
// stream ends before the run, as when the server stops, the wait is unfinished.
func (g *Gateway) wait(ctx context.Context, t *operation.Tool, inner *operation.Inner, out *output,
	c *calling) error {
	waiting, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		select {
		case <-g.clock.After(maxWait):
		case <-waiting.Done():
		}
		inner.Close() // ends the read below
	}()
	lines := bufio.NewScanner(inner.Body)
	lines.Buffer(nil, maxEvent)
	for lines.Scan() {
		data, is := bytes.CutPrefix(lines.Bytes(), []byte("data: "))
		if !is {
			continue
		}
		out.Result = bytes.Clone(data)
		if c.tell != nil {
			c.tell(out.Result)
		}
		if c.glance {
			break
		}
	}
	cancel()
	<-ended
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if out.Result == nil {
		return errors.Join(errSilent, lines.Err())
	}
	var last struct{ State string }
	_ = json.Unmarshal(out.Result, &last) // it may lack a state
	out.Unfinished = !c.glance && last.State == running
	var err error
	if out.Result, err = t.Mark(out.Result, ""); err != nil {
		return fmt.Errorf("agents: an event: %w", err)
	}
	return nil
}

// teller returns a function that reports the progress of a run to a client; nil: it did not ask.
func teller(ctx context.Context, request *mcp.CallToolRequest) func(json.RawMessage) {
	token := request.Params.GetProgressToken()
	if token == nil {
		return nil
	}
	last := -1.0
	return func(event json.RawMessage) {
		var far struct {
			State                                string
			TotalRequests                        float64
			SuccessLinks, ErrorLinks, TotalLinks float64
		}
		if json.Unmarshal(event, &far) != nil || far.SuccessLinks+far.ErrorLinks <= last {
			return // the protocol requires progress to increase
		}
		last = far.SuccessLinks + far.ErrorLinks
		// A client may miss this notification; the answer has the last event.
		_ = request.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{
			ProgressToken: token, Progress: last, Total: far.TotalLinks,
			Message: fmt.Sprintf("%s: %.0f pages", far.State, far.TotalRequests)})
	}
}
