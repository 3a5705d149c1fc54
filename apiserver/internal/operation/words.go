package operation

import (
	"regexp"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

// ofHTTP is what only who calls by HTTP has.
var ofHTTP = regexp.MustCompile(`\b(GET|PUT|POST|DELETE) /|\?\w+=|\bContent-[A-Z]|` +
	`\b([Tt]he|JSON) body\b|query parameter|\bstreamed\b|\banswers 20\d\b|\b408\b|` +
	`Events named|JSON of at most|Last-Event-ID|/api/`)

// asArguments says in a tool's terms what a description says in those of HTTP.
var asArguments = strings.NewReplacer("Idempotency-Key", KeyArgument,
	"as ?token= or X-Preview-Token; without one, a preview of the same deletion by the same "+
		"customer that still holds", "as token", "; X-Preview-Token does as well", "",
	"with the same query", "with the same arguments", "equal parameters", "equal arguments",
	"the header Shoal-Reason", "reason", "that the body does not name", "that are not named",
	"with what the body names", "with what the call names", "The full body", "All of it",
	"answers 202 with", "answers with",
	"; for the path under /api/scraper also a scraper", ", or of svc_stream_scraper a scraper")

// toTools is a description for those who call by arguments. Sentences that are of HTTP alone are
// left out.
func toTools(text string) string {
	sentences := strings.SplitAfter(asArguments.Replace(text), ". ")
	return strings.TrimSpace(strings.Join(slices.DeleteFunc(sentences, ofHTTP.MatchString), ""))
}

// About is what a tool does, beside its summary.
func (t *Tool) About() string {
	about := toTools(t.Description)
	if t.ToAgents != "" && !strings.Contains(about, t.ToAgents) {
		about = strings.TrimSpace(t.ToAgents + " " + about)
	}
	return about
}

// say puts what a schema and those within it say into a tool's terms.
func say(s *jsonschema.Schema) {
	s.Description = toTools(s.Description)
	for _, inner := range s.Properties {
		say(inner)
	}
	for _, inner := range s.Defs {
		say(inner)
	}
	for _, inner := range s.AnyOf {
		say(inner)
	}
	for _, inner := range []*jsonschema.Schema{s.Items, s.AdditionalProperties} {
		if inner != nil {
			say(inner)
		}
	}
}
