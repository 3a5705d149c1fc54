package agents

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"shoal.dev/shoal/apiserver/internal/operation"
	"shoal.dev/shoal/pkg/fault"
)

// confirmWithin is how long a person may take.
const confirmWithin = 5 * time.Minute

// confirmation names the question, in clients that answer it by another call.
const confirmation = "confirm"

// question is an answer that asks a person before the call is made.
type question struct{ *mcp.CallToolResult }

// Error implements error.
func (question) Error() string { return "agents: a person is asked first" }

var errDeclined = fault.New(fault.Declined, "nothing was done, and nothing charged")

// confirm has a person asked before what costs or destroys, where the client can do so. It is nil
// when the call may be made.
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
	message, err := g.message(t, c.Outer.Customer, args)
	if err != nil {
		return err
	}
	ask := &mcp.ElicitParams{Message: message,
		RequestedSchema: json.RawMessage(`{"type":"object","properties":{}}`)}
	if client.ProtocolVersion < stateless {
		asking, cancel := context.WithTimeout(ctx, confirmWithin)
		defer cancel()
		defer context.AfterFunc(g.chain.Work, cancel)()
		said, err := request.Session.Elicit(asking, ask)
		if err != nil || said.Action != "accept" {
			return errDeclined // who was not asked has not agreed
		}
		return nil
	}
	state := strconv.FormatUint(sumOf(args), 36)
	said, answered := request.Params.InputResponses[confirmation].(*mcp.ElicitResult)
	switch {
	case !answered || request.Params.RequestState != state:
		return question{&mcp.CallToolResult{RequestState: state,
			InputRequests: mcp.InputRequestMap{confirmation: ask}}}
	case said.Action != "accept":
		return errDeclined
	}
	return nil
}

// arranges says whether a call has something start by itself from now on.
func arranges(args map[string]json.RawMessage) bool {
	var schedule, start string
	_ = json.Unmarshal(args["schedule"], &schedule) // or there is none
	_ = json.Unmarshal(args["startType"], &start)
	return schedule != "" || start != "" && start != "NONE" && start != "MANUAL"
}

// message is what the person reads. A cap that cannot be told is refused: nobody agrees unseen.
func (g *Gateway) message(t *operation.Tool, customer string,
	args map[string]json.RawMessage) (string, error) {
	if t.Agents == operation.Spends {
		most, err := euros(args["maxChargeMicros"])
		if err != nil {
			return "", fault.Invalid(fault.InvalidRequest, "maxChargeMicros", "must be a whole "+
				"number")
		}
		return fmt.Sprintf("%s? It costs up to %s EUR.", t.Summary, most), nil
	}
	if arranges(args) {
		return t.Summary + "? It starts runs by itself from now on. Each of them costs, with no " +
			"cap but the balance.", nil
	}
	var token string
	_ = json.Unmarshal(args["token"], &token) // or it has none
	if p := g.client.View().Preview(token); p != nil && p.Customer == customer {
		var reached strings.Builder
		for _, c := range p.Cascade.Counts {
			fmt.Fprintf(&reached, ", %s: %d", c.Name, c.N)
		}
		return fmt.Sprintf("Delete the %s %q%s? This cannot be undone.",
			strings.ToLower(p.Cascade.Type), p.Cascade.Name, reached.String()), nil
	}
	return t.Summary + "? This cannot be undone.", nil
}

// euros is an amount of micros, a number or its text: operations take both.
func euros(micros json.RawMessage) (string, error) {
	text := string(micros)
	if said := ""; json.Unmarshal(micros, &said) == nil {
		text = said
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return "", err
	}
	return strings.TrimSuffix(strings.TrimRight(fmt.Sprintf("%d.%06d", n/1e6, n%1e6), "0"), "."),
		nil
}
