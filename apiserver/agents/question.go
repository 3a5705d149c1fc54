package agents

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"shoal.dev/shoal/apiserver/internal/operation"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
)

// maxShown is the most characters of an address that a question shows.
const maxShown = 200

// estimates maps a tool to the tool that estimates the cost of its run.
var estimates = map[string]string{"svc_run_scraper": "svc_estimate_scraper",
	"svc_run_group": "svc_estimate_group"}

// ask writes the question for the person. It names the action, the customer's things that it
// affects, and the probable and the maximum cost. A cap that cannot be read is refused, because
// nobody should agree to an unknown amount.
func (g *Gateway) ask(ctx context.Context, t *operation.Tool, c *calling,
	args map[string]json.RawMessage) (string, error) {
	customer := c.Outer.Customer
	what := t.Summary + g.subject(customer, args) + "?"
	if t.Agents == operation.Spends {
		most, err := euros(args["maxChargeMicros"])
		if err != nil {
			return "", fault.Invalid(fault.InvalidRequest, "maxChargeMicros", "must be a whole "+
				"number of at least 0")
		}
		return fmt.Sprintf("%s%s It costs up to %s EUR.", what, g.price(ctx, t, c, args), most), nil
	}
	if t.Agents != operation.Destroys {
		return what + g.effects(c, args), nil
	}
	var token string
	_ = json.Unmarshal(args["token"], &token) // it may be missing
	if p := g.client.View().Preview(token); p != nil && p.Customer == customer {
		var reached strings.Builder
		for _, c := range p.Cascade.Counts {
			fmt.Fprintf(&reached, ", %s: %d", c.Name, c.N)
		}
		return fmt.Sprintf("Delete the %s %q%s? This cannot be undone.",
			strings.ToLower(p.Cascade.Type), p.Cascade.Name, reached.String()), nil
	}
	if t.Revocable {
		return what, nil
	}
	return what + " This cannot be undone.", nil
}

// identifying are the arguments that may have the id of a customer's thing.
var identifying = []string{"scraperId", "scraperRef", "templateScraperId", "id", "groupId",
	"groupRef", "siteId", "categoryId", "scraperJobStatusId", "uploadId"}

// telling are the arguments that a question repeats as they are, with a word for each.
var telling = []struct{ argument, word string }{{"name", "name"}, {"email", "e-mail"},
	{"key", "key"}, {"plan", "plan"}, {"schedule", "schedule"}, {"scheduleTimezone", "zone"},
	{"startType", "start type"}, {"url", ""}, {"curl", ""}}

// subject names what a call is about: the customer's things by name, and addresses; "" if the call
// does not say.
func (g *Gateway) subject(customer string, args map[string]json.RawMessage) string {
	var about []string
	text := func(name string) (said string) {
		_ = json.Unmarshal(args[name], &said) // it may be missing
		return said
	}
	for _, name := range identifying {
		if said := text(name); said != "" {
			about = append(about, g.thing(customer, name, said))
		}
	}
	for _, t := range telling {
		if said := text(t.argument); said != "" {
			about = append(about, strings.TrimSpace(fmt.Sprintf("%s %.*q", t.word, maxShown, said)))
		}
	}
	var source struct{ URL string }
	_ = json.Unmarshal(args["sourceConfig"], &source) // it may be missing
	if source.URL != "" {
		about = append(about, fmt.Sprintf("%.*q", maxShown, source.URL))
	}
	var urls []string
	_ = json.Unmarshal(args["urls"], &urls) // it may be missing
	var links []struct{ URL string }
	_ = json.Unmarshal(args["links"], &links) // it may be missing
	for _, link := range links {
		urls = append(urls, link.URL)
	}
	if len(urls) > 0 {
		about = append(about, fmt.Sprintf("%d addresses, the first %.*q", len(urls), maxShown,
			urls[0]))
	}
	if len(about) == 0 {
		return ""
	}
	return " (" + strings.Join(about, ", ") + ")"
}

// thing names a customer's thing, given by its id in an argument. What has no name is told by its
// id, as is what is not the customer's: the operation refuses that.
func (g *Gateway) thing(customer, argument, said string) string {
	view := g.client.View()
	id, _ := ids.Parse(said)
	if s := view.Scraper(id); s != nil && s.Customer == customer {
		return fmt.Sprintf("scraper %q", s.Spec.Name)
	}
	if group := view.Group(id); group != nil && group.Customer == customer {
		return fmt.Sprintf("group %q", group.Name)
	}
	if key := view.Key(id); key != nil && key.Customer == customer {
		return fmt.Sprintf("key %q", key.Name)
	}
	if hook := view.Webhook(id); hook != nil && hook.Customer == customer {
		return fmt.Sprintf("webhook to %.*q", maxShown, hook.URL)
	}
	if schema := view.Schema(id); schema != nil && schema.Customer == customer {
		return fmt.Sprintf("schema %q", schema.Name)
	}
	if site := view.Site(id); site != nil && site.Customer == customer {
		return fmt.Sprintf("site %q", site.Name)
	}
	if grant := view.Grant(id); grant != nil && grant.Customer == customer {
		return fmt.Sprintf("grant of %q", grant.Name)
	}
	if kept := view.Export(id); kept != nil && kept.Customer == customer {
		var asked struct{ Format string }
		_ = json.Unmarshal(kept.Request, &asked) // it was checked when the export was asked for
		of := fmt.Sprintf("%d groups", len(kept.Groups))
		if len(kept.Groups) == 1 {
			of = g.thing(customer, "group", kept.Groups[0].String())
		}
		return fmt.Sprintf("export of %s as %s, asked for at %s", of, asked.Format,
			time.UnixMilli(kept.CreatedAt).UTC().Format(time.RFC3339))
	}
	return fmt.Sprintf("%s %.*q", argument, maxShown, said)
}

// price is the probable cost of a run; "" if it is unknown.
func (g *Gateway) price(ctx context.Context, t *operation.Tool, c *calling,
	args map[string]json.RawMessage) string {
	estimate := g.tools[estimates[t.ID]]
	if estimate == nil {
		return ""
	}
	with, err := json.Marshal(map[string]json.RawMessage{"id": args["id"]})
	if err != nil {
		return ""
	}
	out, err := g.call(ctx, estimate, &calling{Inside: operation.Inside{Outer: c.Outer,
		Credential: c.Credential}, args: with})
	if err != nil || out.Result == nil {
		return "" // the launch itself reports the error
	}
	var said struct{ MinMicros, MaxMicros json.RawMessage }
	if json.Unmarshal(out.Result, &said) != nil {
		return ""
	}
	least, err := euros(said.MinMicros)
	if err != nil {
		return ""
	}
	most, err := euros(said.MaxMicros)
	if err != nil {
		return ""
	}
	return fmt.Sprintf(" It will probably cost %s to %s EUR.", least, most)
}

// euros formats an amount of micros, given as a number or as text, like the operations accept it.
func euros(micros json.RawMessage) (string, error) {
	text := string(micros)
	if said := ""; json.Unmarshal(micros, &said) == nil {
		text = said
	}
	n, err := strconv.ParseUint(text, 10, 53)
	if err != nil {
		return "", err
	}
	return strings.TrimSuffix(strings.TrimRight(fmt.Sprintf("%d.%06d", n/1e6, n%1e6), "0"), "."),
		nil
}
