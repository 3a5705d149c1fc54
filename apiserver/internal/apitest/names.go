package apitest

import (
	"encoding/json"
	"net/url"
	"slices"
	"testing"
	"time"
)

// Names are the names that CheckNames expects, in order of creation.
func Names() []string { return []string{"beta", "Ärger alpha", "Alpha", "gamma", "ALPHA beta"} }

// CheckNames checks a list's answers to q, sort, from and to. Alice must have things of these
// names, created a second apart, the last one now. The other customer must have none. Things with
// other names are ignored.
func (s *Server) CheckNames(t *testing.T, path string) {
	t.Helper()
	at := func(n int) string {
		age := time.Duration(len(Names())-1-n) * time.Second
		return url.QueryEscape(s.Clock.Now().Add(-age).UTC().Format(time.RFC3339Nano))
	}
	for query, want := range map[string][]int{
		"from=" + at(2):                             {2, 3, 4},
		"to=" + at(2):                               {0, 1},
		"from=" + at(1) + "&to=" + at(3):            {1, 2},
		"from=" + at(3) + "&to=" + at(3):            {},
		"from=" + at(1) + "&q=alpha&sort=name,desc": {1, 4, 2},
		"":                           {0, 1, 2, 3, 4},
		"q=alpha":                    {1, 2, 4},
		"q=%C3%A4RGER":               {1},
		"q=none":                     {},
		"q=":                         {0, 1, 2, 3, 4},
		"sort=name":                  {2, 4, 0, 3, 1},
		"sort=name,desc":             {1, 3, 0, 4, 2},
		"sort=name:desc&q=beta":      {0, 4},
		"sort=createdAt,desc":        {4, 3, 2, 1, 0},
		"sort=createdAt:asc&q=ALPHA": {1, 2, 4},
	} {
		names := []string{}
		for _, at := range want {
			names = append(names, Names()[at])
		}
		if got := s.names(t, Reader, path+"?"+query); !slices.Equal(got, names) {
			t.Errorf("%s?%s: %q, want %q", path, query, got, names)
		}
		if theirs := s.names(t, Other, path+"?"+query); len(theirs) > 0 {
			t.Errorf("%s?%s shows another customer %q", path, query, theirs)
		}
	}
	for query, code := range map[string]string{"sort=id": "invalid_sort",
		"sort=name,up": "invalid_sort", "sort=,desc": "invalid_sort",
		"name=beta": "unknown_parameter"} {
		s.Run(t, Scenario{Name: path + "?" + query, As: User, Do: "GET " + path + "?" + query,
			Status: 400, Code: code})
	}
	s.checkSpansRefused(t, path, at(4), at(0))
	s.Run(t, Scenario{Name: path + " of a direction", As: User, Do: "GET " + path + "?sort=" +
		url.QueryEscape("name desc"), Status: 400, Code: "invalid_sort",
		Has: map[string]any{"errors.0.field": "sort"}})
}

// names are the names in a list that belong to Names. The list may be under keys.
func (s *Server) names(t *testing.T, as, path string) (names []string) {
	t.Helper()
	body := s.Call(t, Scenario{As: as, Do: "GET " + path}).Body
	type named struct{ Name string }
	var list []named
	var under struct{ Keys []named }
	if json.Unmarshal(body, &list) != nil {
		if err := json.Unmarshal(body, &under); err != nil || under.Keys == nil {
			t.Fatalf("%s: %v: %s", path, err, body)
		}
	}
	for _, one := range append(list, under.Keys...) {
		if slices.Contains(Names(), one.Name) {
			names = append(names, one.Name)
		}
	}
	return names
}
