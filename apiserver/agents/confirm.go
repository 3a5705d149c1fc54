package agents

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"shoal.dev/shoal/apiserver/internal/operation"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
)

// confirmWithin is how long a person may take to answer.
const confirmWithin = 5 * time.Minute

// confirmation is the key of the question for clients that answer it with another call.
const confirmation = "confirm"

// question is an answer that asks a person before the call is made. It implements error.
type question struct{ *mcp.CallToolResult }

// Error implements error.
func (question) Error() string { return "agents: a person is asked first" }

var errDeclined = fault.New(fault.Declined, "nothing was done, and nothing charged")

// confirm asks a person before a call that costs or destroys, if the client can. It returns nil if
// the call may be made.
func (g *Gateway) confirm(ctx context.Context, t *operation.Tool, c *calling,
	args map[string]json.RawMessage) error {
	request := c.asks
	if request == nil || t.Agents != operation.Spends && t.Agents != operation.Destroys &&
		!arranges(args) {
		return nil
	}
	client := request.Session.InitializeParams()
	if client == nil || client.Capabilities == nil || client.Capabilities.Elicitation == nil ||
		client.Capabilities.Elicitation.Form == nil && client.Capabilities.Elicitation.URL != nil {
		return nil
	}
	message, err := g.ask(ctx, t, c, args)
	if err != nil {
		return err
	}
	ask := &mcp.ElicitParams{Message: message,
		RequestedSchema: json.RawMessage(`{"type":"object","properties":{}}`)}
	if client.ProtocolVersion < stateless {
		asking, cancel := context.WithTimeout(ctx, confirmWithin)
		defer cancel()
		defer context.AfterFunc(g.chain.Streaming, cancel)() // a stop does not wait for people
		said, err := request.Session.Elicit(asking, ask)
		if err != nil || said.Action != "accept" {
			return errDeclined // a person who was not asked has not agreed
		}
		return nil
	}
	said, answered := request.Params.InputResponses[confirmation].(*mcp.ElicitResult)
	id, of, _ := strings.Cut(request.Params.RequestState, "-")
	asked, err := ids.Parse(id)
	sum := strconv.FormatUint(sumOf(args), 36)
	switch {
	case !answered || err != nil || of != sum:
		return question{&mcp.CallToolResult{RequestState: g.chain.IDs.New().String() + "-" + sum,
			InputRequests: mcp.InputRequestMap{confirmation: ask}}}
	case said.Action != "accept":
		return errDeclined
	}
	if c.Key == "" && t.Idempotency != operation.Ignored {
		c.Key = asked.String() // a repeated confirmation counts once
	}
	return nil
}

// arranges reports whether a call makes something start automatically from now on.
func arranges(args map[string]json.RawMessage) bool {
	var schedule, start string
	_ = json.Unmarshal(args["schedule"], &schedule) // it may be missing
	_ = json.Unmarshal(args["startType"], &start)
	return schedule != "" || start != "" && start != "NONE" && start != "MANUAL"
}
