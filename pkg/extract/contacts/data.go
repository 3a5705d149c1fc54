package contacts

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"shoal.dev/shoal/pkg/wordset"
)

// dataAddresses returns the addresses that JSON-LD states as the site's.
func dataAddresses(blocks, own []string) []string {
	var emails []string
	take := func(text string) {
		for _, h := range findAddresses(strings.TrimPrefix(text, "mailto:"), own) {
			emails = append(emails, h.email)
		}
	}
	for _, block := range blocks {
		if at := strings.IndexAny(block, "{["); at > 0 && wrapped.MatchString(block[:at]) {
			block = block[at:] // wrapped in a comment or CDATA
		}
		decoder := json.NewDecoder(strings.NewReader(block))
		read := false
		for decoder.More() { // a block may have several documents
			var value any
			if decoder.Decode(&value) != nil {
				break
			}
			read = true
			walkData(value, 0, take)
		}
		if read {
			continue
		}
		// Broken JSON does not tell whose data it is, so only the site's own addresses count.
		for _, found := range brokenEmail.FindAllStringSubmatch(block, maxAddresses) {
			for _, h := range findAddresses(found[1], own) {
				if slices.Contains(own, domainOfEmail(h.email)) {
					emails = append(emails, h.email)
				}
			}
		}
	}
	return emails
}

var (
	wrapped     = regexp.MustCompile(`^\s*(?://\s*)?<!(?:--|\[CDATA)[^{\[]*(?:\[CDATA)?$`)
	brokenEmail = regexp.MustCompile(`"email"\s*:\s*"(?:mailto:)?([^"@\s]{1,64}@[^"@\s]{1,253})"`)
)

// maxDataDepth bounds the nesting of JSON that is examined.
const maxDataDepth = 32

// notOwn are the members of JSON-LD that hold other parties' data.
var notOwn = []string{"review", "reviews", "creator", "sdPublisher", "reviewedBy", "sponsor",
	"funder", "copyrightHolder", "author"}

func walkData(value any, depth int, email func(string)) {
	if depth > maxDataDepth {
		return
	}
	switch v := value.(type) {
	case []any:
		for _, element := range v {
			walkData(element, depth+1, email)
		}
	case map[string]any:
		eachText(v["email"], email)
		for _, name := range sortedNames(v) {
			if name != "email" && !slices.Contains(notOwn, name) {
				walkData(v[name], depth+1, email)
			}
		}
	}
}

func sortedNames(object map[string]any) []string {
	names := make([]string, 0, len(object))
	for name := range object {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func eachText(value any, do func(string)) {
	switch v := value.(type) {
	case string:
		do(v)
	case []any:
		for _, element := range v {
			if text, ok := element.(string); ok {
				do(text)
			}
		}
	}
}

// A framework's data is the JSON, in a script or an attribute, from which a page was rendered. It
// mixes people's addresses with the site's. An address counts if it is on the site's own domain, or
// if its member's name marks it as public.
var (
	assigned  = regexp.MustCompile(`^\s*(?:(?:var|let|const)\s+)?(?:(?:window|self|globalThis)\.)?[\w$.]{1,60}\s*(?:=|\.push\(|\()\s*[{\[]`)
	mailNames = wordset.Of("contactemail supportemail contactmail publicemail companyemail " +
		"businessemail customerserviceemail")
	// othersNames are members that hold other people's texts or identities.
	othersNames = wordset.Of("review reviews author authors user users customer customers comment " +
		"comments creator reviewer reviewers account session viewer vendor vendors")
)

// stateIn returns the JSON that a script assigns or passes on, or "" if it does neither.
func stateIn(script string) string {
	at := assigned.FindStringIndex(script[:min(len(script), 200)])
	if at == nil || !hasSign(script) {
		return ""
	}
	return script[at[1]-1:]
}

// stateAddresses returns the addresses that framework data states as the site's.
func stateAddresses(blocks, own []string) []string {
	var emails []string
	for _, block := range blocks {
		var value any
		if json.NewDecoder(strings.NewReader(block)).Decode(&value) == nil {
			emails = walkState(value, "", 0, own, emails)
		}
	}
	return emails
}

func walkState(value any, name string, depth int, own, emails []string) []string {
	if depth > maxDataDepth || len(emails) >= maxKept {
		return emails
	}
	switch v := value.(type) {
	case []any:
		for _, element := range v {
			emails = walkState(element, name, depth+1, own, emails)
		}
	case map[string]any:
		for _, name := range sortedNames(v) {
			if plain := strings.ReplaceAll(strings.ToLower(name), "_", ""); !othersNames[plain] {
				emails = walkState(v[name], plain, depth+1, own, emails)
			}
		}
	case string:
		if !strings.Contains(v, "@") || len(v) > maxText {
			return emails
		}
		for _, h := range findAddresses(strings.TrimPrefix(v, "mailto:"), own) {
			if mailNames[name] || slices.Contains(own, domainOfEmail(h.email)) {
				emails = append(emails, h.email)
			}
		}
	}
	return emails
}
