package operation

import (
	"regexp"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

// ofHTTP is in sentences that are for those who call by HTTP alone.
var ofHTTP = regexp.MustCompile(`\b(GET|PUT|POST|DELETE) /|\?\w+=|\bContent-[A-Z]|\bX-[A-Z]|` +
	`\b([Tt]he|JSON) body\b|query parameter|\bstreamed\b|\banswers 20\d\b|\b408\b|` +
	`Events named|JSON of at most|Last-Event-ID|/api/`)

// asMembers are what headers are in a tool's call and answer.
var asMembers = strings.NewReplacer("Idempotency-Key", KeyArgument,
	"the header Shoal-Reason", "reason")

// toTools is a description for those who call by arguments, without the sentences that are of HTTP
// alone.
func toTools(text string) string {
	sentences := strings.SplitAfter(asMembers.Replace(text), ". ")
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
