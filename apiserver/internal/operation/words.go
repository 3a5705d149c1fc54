package operation

import (
	"regexp"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

// ofHTTP matches sentences that only concern callers by HTTP.
var ofHTTP = regexp.MustCompile(`\b(GET|PUT|POST|DELETE) /|\?\w+=|\bContent-[A-Z]|\bX-[A-Z]|` +
	`\b([Tt]he|JSON) body\b|query parameter|\bstreamed\b|\banswers 20\d\b|\b408\b|` +
	`Events named|JSON of at most|Last-Event-ID|/api/`)

// asMembers replaces names of headers by those of a tool's arguments and result members.
var asMembers = strings.NewReplacer("Idempotency-Key", KeyArgument,
	"the header Shoal-Reason", "reason")

// toTools adapts a description to callers by arguments: it drops the sentences that only concern
// HTTP.
func toTools(text string) string {
	sentences := strings.SplitAfter(asMembers.Replace(text), ". ")
	return strings.TrimSpace(strings.Join(slices.DeleteFunc(sentences, ofHTTP.MatchString), ""))
}

// About says what a tool does, in addition to its summary.
func (t *Tool) About() string {
	about := toTools(t.Description)
	if t.ToAgents != "" && !strings.Contains(about, t.ToAgents) {
		about = strings.TrimSpace(t.ToAgents + " " + about)
	}
	return about
}

// say rewrites the descriptions in a schema, at all depths, for tools.
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
