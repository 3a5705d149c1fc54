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
		g.effects(c, args) == "" || g.isAnswered(t, c) {
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

// effects says what a call that neither costs nor destroys by itself brings about later; "":
// nothing of that kind.
func (g *Gateway) effects(c *calling, args map[string]json.RawMessage) (said string) {
	view, customer := g.client.View(), c.Outer.Customer
	if arranges(view, customer, args) {
		said = " It will start runs on its own from now on. Each run costs, with no cap but the " +
			"balance."
	}
	if kept := forgets(view, customer, args); kept > 0 {
		said += fmt.Sprintf(" From now on the rows of all runs but the newest %d are deleted, "+
			"which cannot be undone.", kept)
	}
	return said
}

// forgets returns how many of the newest runs keep their rows after a call, if fewer than before;
// 0: no fewer.
func forgets(view *client.View, customer string, args map[string]json.RawMessage) (kept int) {
	_, named := args["retentionCount"] // null: all runs, or as many as the scraper says
	var said struct {
		ID             ids.ID
		GroupRef       ids.ID
		RetentionCount *int
		Config         *model.ScraperConfig
	}
	for name, into := range map[string]any{"id": &said.ID, "groupRef": &said.GroupRef,
		"retentionCount": &said.RetentionCount, "config": &said.Config} {
		_ = json.Unmarshal(args[name], into) // it may be missing; the operation refuses another
	}
	fewer := func(s *client.Scraper, after int) {
		if before := client.Retained(view, s); after > 0 && (before == 0 || after < before) {
			kept = after
		}
	}
	if group := view.Group(said.ID); group != nil && group.Customer == customer {
		count := 0
		if said.RetentionCount != nil {
			count = *said.RetentionCount
		}
		if named {
			view.GroupScrapers(group.ID, func(s *client.Scraper) bool {
				fewer(s, client.RetainedWith(view, s, count))
				return kept == 0
			})
		}
		return kept
	}
	s := view.Scraper(said.ID)
	if s == nil || s.Customer != customer || !named && said.GroupRef.IsZero() {
		return 0
	}
	changed := *s
	if !said.GroupRef.IsZero() {
		changed.Group, changed.Spec.Config = said.GroupRef, said.Config
	}
	if named {
		changed.Spec.Config = &model.ScraperConfig{RetentionCount: said.RetentionCount}
	}
	fewer(s, client.Retained(view, &changed))
	return kept
}

// arranges reports whether a call makes something start automatically from now on, by its own
// schedule or with its group. It may also make what starts so read more pages.
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
	if known == nil || known.Group != group.ID || known.Spec.Schedule != "" {
		return true
	}
	var source model.SourceConfig
	_ = json.Unmarshal(args["sourceConfig"], &source) // the operation refuses another
	return pagesOf(source.Pagination) > pagesOf(known.Spec.SourceConfig.Pagination)
}

// pagesOf is how many pages a pagination reads, at most.
func pagesOf(p *model.Pagination) int {
	switch {
	case p == nil:
		return 1
	case p.Max == nil:
		return model.DefaultMaxPages
	}
	return *p.Max
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
