package agents

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strconv"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"shoal.dev/shoal/apiserver/internal/operation"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
)

const (
	// maxAnswer is the size limit of an operation's answer that can be cut, bytes.
	maxAnswer = 8 << 20
	// maxReading is how many answers are assembled at once.
	maxReading = 8
)

// Cost is the charge of the run that a call launched, so far, or of the runs of a group together.
type Cost struct {
	JobID         ids.ID `json:"jobId,omitzero"` // of one run
	ChargedMicros int64  `json:"chargedMicros"`
}

// output is the answer of every tool. Empty members are left out.
type output struct {
	Result     json.RawMessage `json:"result,omitempty"`
	Error      *failure        `json:"error,omitempty"`
	Reason     string          `json:"reason,omitempty"`
	Cost       *Cost           `json:"cost,omitempty"`
	Unfinished bool            `json:"unfinished,omitempty"`
	Key        string          `json:"idempotencyKey,omitempty"`
	Truncated  bool            `json:"truncated,omitempty"`
	Part       string          `json:"part,omitempty"`
	Cursor     string          `json:"cursor,omitempty"`
}

// failure is a Problem with the time to retry after.
type failure struct {
	operation.Problem
	RetryAfterSeconds json.Number `json:"retryAfterSeconds,omitempty"`
}

// calling is one call of a tool.
type calling struct {
	operation.Inside
	args   json.RawMessage
	tell   func(event json.RawMessage) // reports the progress of a wait; nil: nobody asked for it
	glance bool                        // end a wait at its first event
	asks   *mcp.CallToolRequest        // the request of a client that may ask a person; nil: none
}

// handle makes the library's handler for a tool.
func (g *Gateway) handle(t *operation.Tool) mcp.ToolHandler {
	return func(ctx context.Context, request *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		from, credential := callerOf(request)
		if from == nil {
			return nil, errNobody
		}
		out, err := g.call(ctx, t, &calling{Inside: operation.Inside{Outer: from,
			Credential: credential}, args: request.Params.Arguments, tell: teller(ctx, request),
			asks: request})
		var ask question
		switch {
		case errors.As(err, &ask):
			return ask.CallToolResult, nil
		case ctx.Err() != nil:
			return nil, errCancelled
		}
		if err != nil {
			out = &output{Error: &failure{Problem: *operation.NewProblem(err, from.RequestID)}}
		}
		text, err := encode(out)
		if err != nil {
			return nil, err
		}
		return &mcp.CallToolResult{IsError: out.Error != nil,
			StructuredContent: text,
			Content:           []mcp.Content{&mcp.TextContent{Text: string(text)}}}, nil
	}
}

var errNobody = errors.New("agents: a call without a caller")

// errCancelled ends a call that its caller has cancelled. The caller no longer listens, but the
// library needs an answer to end the stream.
var errCancelled = &jsonrpc.Error{Code: -32800, Message: "the request was cancelled"}

// encode encodes an answer, or a part of one, as JSON.
func encode(value any) (json.RawMessage, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return nil, fmt.Errorf("agents: an answer: %w", err)
	}
	return bytes.TrimSuffix(text.Bytes(), []byte("\n")), nil
}

// call executes one call of a tool.
func (g *Gateway) call(ctx context.Context, t *operation.Tool, c *calling) (*output, error) {
	args, err := operation.ReadArguments(c.args)
	if err != nil {
		return nil, err
	}
	at, err := takePlace(t, args)
	if err != nil {
		return nil, err
	}
	if err := t.Fill(args, &c.Inside); err != nil {
		return nil, err
	}
	c.Key = cmp.Or(c.Key, at.Key)
	if !c.Refused() {
		if err := g.confirm(ctx, t, c, args); err != nil {
			return nil, err
		}
	}
	if c.Key == "" && t.Idempotency == operation.Required {
		c.Key = g.chain.IDs.New().String()
	}
	inner := g.chain.Do(ctx, t.Operation, &c.Inside)
	defer inner.Close()
	out := &output{Reason: inner.Reason}
	if t.Later && inner.Status == http.StatusAccepted { // the same key waits on (decision 66)
		out.Unfinished, out.Key = true, c.Key
	}
	switch {
	case inner.Status >= http.StatusBadRequest:
		return g.failed(inner)
	case t.Streams():
		err = g.wait(ctx, t, inner, out, c)
	case t.Result != nil:
		at.Key = c.Key
		err = g.read(ctx, inner, out, &reading{calling: c, of: t, args: args, at: at})
	}
	return out, err
}

// isObject reports whether valid JSON is an object.
func isObject(text []byte) bool { return bytes.HasPrefix(bytes.TrimSpace(text), []byte("{")) }

// originOf is the page that a call is about, "" if it names none.
func originOf(args map[string]json.RawMessage) (url string) {
	_ = json.Unmarshal(args["url"], &url) // not every tool has a url
	return url
}

// failed turns the refusal of an operation into an output.
func (g *Gateway) failed(inner *operation.Inner) (*output, error) {
	told := &failure{RetryAfterSeconds: json.Number(inner.RetryAfter)}
	if err := json.NewDecoder(inner.Body).Decode(&told.Problem); err != nil {
		return nil, fmt.Errorf("agents: a refusal: %w", err)
	}
	g.nameTools(&told.Problem)
	return &output{Error: told}, nil
}

// read reads an answer, marks scraped texts, and cuts it to the budget.
func (g *Gateway) read(ctx context.Context, inner *operation.Inner, out *output,
	r *reading) error {
	select {
	case g.reading <- struct{}{}:
		defer func() { <-g.reading }()
	case <-ctx.Done():
		return ctx.Err()
	}
	answer, err := r.take(inner)
	if err != nil {
		return err
	}
	if r.of.Agents == operation.Spends { // of the whole answer, however much of it is told
		if out.Cost, err = g.cost(ctx, inner.Job, answer); err != nil {
			return err
		}
	}
	if r.of.HasCursor() {
		r.again = func(limit int) (json.RawMessage, error) {
			return g.readAgain(ctx, r, out, limit)
		}
	}
	return r.tell(answer, out)
}

// take reads what an operation answers, and marks scraped texts.
func (r *reading) take(inner *operation.Inner) (json.RawMessage, error) {
	answer, err := io.ReadAll(io.LimitReader(inner.Body, maxAnswer+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("agents: an answer: %w", err)
	case len(answer) > maxAnswer:
		return nil, fault.New(fault.ExportTooLarge, "the answer is longer than %d MiB: ask for "+
			"less of it, by size, limit or fields", maxAnswer>>20)
	}
	origin := cmp.Or(inner.Origin, originOf(r.args))
	if answer, err = r.of.Mark(answer, origin); err != nil {
		return nil, fmt.Errorf("agents: an answer: %w", err)
	}
	return answer, nil
}

// readAgain calls the operation again, for at most so many items of its list. nil: it is refused,
// which out says.
func (g *Gateway) readAgain(ctx context.Context, r *reading, out *output, limit int) (
	json.RawMessage, error) {
	args, again := maps.Clone(r.args), r.Inside
	args[operation.LimitArgument] = strconv.AppendInt(nil, int64(limit), 10)
	if err := r.of.Fill(args, &again); err != nil {
		return nil, err
	}
	inner := g.chain.Do(ctx, r.of.Operation, &again)
	defer inner.Close()
	if inner.Status >= http.StatusBadRequest {
		refused, err := g.failed(inner)
		if err == nil {
			out.Error = refused.Error
		}
		return nil, err
	}
	return r.take(inner)
}

// cost returns what the run that a call made has cost so far, or the runs of a group that its
// answer names. A call without a run, answered from what is kept, costs nothing.
func (g *Gateway) cost(ctx context.Context, job ids.ID, answer json.RawMessage) (*Cost, error) {
	cost := &Cost{JobID: job}
	var made struct{ Jobs []struct{ JobID ids.ID } }
	switch {
	case !job.IsZero():
		made.Jobs = append(made.Jobs, struct{ JobID ids.ID }{job})
	case isObject(answer):
		_ = json.Unmarshal(answer, &made) // most answers name no runs
	}
	for _, job := range made.Jobs {
		run, err := g.history.Run(ctx, g.client.View(), job.JobID)
		if err != nil {
			return nil, fmt.Errorf("agents: what run %s costs: %w", job.JobID, err)
		}
		if run != nil {
			cost.ChargedMicros += run.Charged
		}
	}
	return cost, nil
}
