package search

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"

	"shoal.dev/shoal/pkg/model"
)

// placeholder marks the query in an engine's address.
const placeholder = "{query}"

var nameForm = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,62}$`)

// maxEngines bounds the number of a server's engines.
const maxEngines = 100

// ParseEngines reads a server's engines: a JSON array of model.SearchEngine. The first one is the
// default.
func ParseEngines(data []byte) ([]model.SearchEngine, error) {
	var engines []model.SearchEngine
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&engines); err != nil {
		return nil, fmt.Errorf("search engines: %w", err)
	}
	if len(engines) > maxEngines {
		return nil, fmt.Errorf("search engines: %d are more than %d", len(engines), maxEngines)
	}
	seen := map[string]bool{}
	for i := range engines {
		if err := check(&engines[i]); err != nil {
			return nil, fmt.Errorf("search engine %d (%q): %w", i+1, engines[i].Name, err)
		}
		if seen[engines[i].Name] {
			return nil, fmt.Errorf("search engine %d: there is one named %q already", i+1,
				engines[i].Name)
		}
		seen[engines[i].Name] = true
	}
	return engines, nil
}

var (
	errName = errors.New("the name must be 1 to 63 lower-case letters, digits, - or _")
	errURL  = errors.New("the url must be an http or https address with {query} as the value " +
		"of one parameter: https://…/search?q={query}&format=json")
	errPages = errors.New("pageStart must be 0 or more, pageStep 1 or more, and both stand " +
		"with pageParam")
	errField = errors.New("results are the fields title (first), url, snippet and kind; title " +
		"and url are needed")
)

func check(e *model.SearchEngine) error {
	if !nameForm.MatchString(e.Name) {
		return errName
	}
	u, err := url.Parse(e.URL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" ||
		queryParam(e.URL) == "" ||
		strings.Count(e.URL, placeholder) != 1 {
		return errURL
	}
	if e.PageStart != nil && *e.PageStart < 0 || e.PageStep != nil && *e.PageStep < 1 ||
		e.PageParam == "" && (e.PageStart != nil || e.PageStep != nil) {
		return errPages
	}
	if len(e.Results) == 0 {
		return nil
	}
	names := map[string]bool{}
	for i, f := range e.Results {
		if i == 0 && f.Name != "title" || names[f.Name] {
			return errField
		}
		switch names[f.Name] = true; f.Name {
		case "title", "url", "snippet", "kind":
		default:
			return errField
		}
	}
	if !names["url"] {
		return errField
	}
	if _, faults := Compile(model.Recipe{Search: e}); len(faults) > 0 {
		return faults
	}
	return nil
}

// queryParam returns the parameter whose value is the query, or "" if there is none.
func queryParam(template string) string {
	_, query, _ := strings.Cut(template, "?")
	query, _, _ = strings.Cut(query, "#")
	for pair := range strings.SplitSeq(query, "&") {
		if name, value, _ := strings.Cut(pair, "="); value == placeholder {
			name, err := url.QueryUnescape(name)
			if err != nil {
				return ""
			}
			return name
		}
	}
	return ""
}

// Address returns the address at which an engine answers a query.
func Address(e *model.SearchEngine, query string) string {
	return strings.Replace(e.URL, placeholder, url.QueryEscape(query), 1)
}
