package agents

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"shoal.dev/shoal/apiserver/internal/operation"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
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
		!arranges(g.client.View(), c.Outer.Customer, args) || g.isAnswered(t, c) {
		return nil
	}
	agent := request.Session.InitializeParams()
	if agent == nil || agent.Capabilities == nil || agent.Capabilities.Elicitation == nil ||
		agent.Capabilities.Elicitation.Form == nil && agent.Capabilities.Elicitation.URL != nil {
		return nil
	}
	message, err := g.ask(ctx, t, c, args)
	if err != nil {
		return err
	}
	ask := &mcp.ElicitParams{Message: message,
		RequestedSchema: json.RawMessage(`{"type":"object","properties":{}}`)}
	if agent.ProtocolVersion < stateless {
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

// isAnswered reports whether a call gets the answer that its key already has, as the call for the
// next part of an answer does. It does nothing then. A cursor does not prove that: anybody can make
// one. An answer about to expire does not count, because it may be gone once the call is made.
func (g *Gateway) isAnswered(t *operation.Tool, c *calling) bool {
	claim := g.client.View().Claim(c.Outer.Customer, t.ID, c.Key)
	return claim != nil && claim.Done &&
		claim.Expires > g.clock.Now().Add(confirmWithin).UnixMilli()
}

// arranges reports whether a call makes something start automatically from now on: by its own
// schedule, or with its group.
func arranges(view *client.View, customer string, args map[string]json.RawMessage) bool {
	text := func(name string) (said string) {
		_ = json.Unmarshal(args[name], &said) // it may be missing
		return said
	}
	own := func(id string) *client.Group {
		parsed, _ := ids.Parse(id) // the operation refuses another
		if group := view.Group(parsed); group != nil && group.Customer == customer {
			return group
		}
		return nil
	}
	switch group, start := own(text("id")), text("startType"); {
	case text("schedule") != "" || startsAll(start):
		return true
	case group != nil && group.StartType == "NONE" && start == "MANUAL":
		return resumes(view, group)
	}
	group := own(text("groupRef"))
	if group == nil || !startsAll(group.StartType) || text("type") == string(model.File) {
		return false
	}
	id, _ := ids.Parse(text("id")) // a new one has none
	known := view.Scraper(id)
	return known == nil || known.Group != group.ID || known.Spec.Schedule != ""
}

// startsAll reports whether a group with this start type starts its scrapers.
func startsAll(startType string) bool { return startType == "DAILY" || startType == "WEEKLY" }

// resumes reports whether a paused group has scrapers with schedules of their own.
func resumes(view *client.View, group *client.Group) (found bool) {
	view.GroupScrapers(group.ID, func(s *client.Scraper) bool {
		found = s.Spec.Schedule != ""
		return !found
	})
	return found
}
