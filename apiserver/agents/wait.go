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

// running is the state of a run that goes on, as its events tell it.
const running = "RUNNING"

// maxEvent is the most bytes of an event.
const maxEvent = 64 << 10

var errSilent = fault.New(fault.Unavailable, "nothing was told of the run in time: call again")

// wait follows a stream of events to its end, or until the time is up, and answers the last one.
// The stream may end before the run does, as when the server stops. Then the wait is unfinished.
func (g *Gateway) wait(ctx context.Context, inner *operation.Inner, out *output,
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
		inner.Close() // whoever reads sees it end
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
	_ = json.Unmarshal(out.Result, &last) // or it has none
	out.Unfinished = !c.glance && last.State == running
	return nil
}

// teller tells a client how far a run is; nil: it did not ask for that.
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
			return // the protocol wants it to grow
		}
		last = far.SuccessLinks + far.ErrorLinks
		// A client that does not take it misses it: the answer has the last one.
		_ = request.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{
			ProgressToken: token, Progress: last, Total: far.TotalLinks,
			Message: fmt.Sprintf("%s: %.0f pages", far.State, far.TotalRequests)})
	}
}
