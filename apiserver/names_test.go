package apiserver_test

import (
	"cmp"
	"encoding/json"
	"net/url"
	"os"
	"strings"
	"testing"

	"shoal.dev/shoal/apiserver/internal/apitest"
)

// TestNamesAreOneLine: wherever customers give a name, control characters in it are refused, and
// the refusal names the field.
func TestNamesAreOneLine(t *testing.T) {
	s := apitest.Start(t)
	group := s.NewGroup(t, "alice", "g")
	for name, c := range map[string]apitest.Scenario{
		"group": {As: apitest.User, Do: "PUT /api/scraper/group"},
		"scraper": {As: apitest.User, Do: "PUT /api/scraper",
			Code: "schema_validation_failed"},
		"preview": {As: apitest.User, Do: "POST /api/scraper-simple/url-based"},
		"curl":    {As: apitest.User, Do: "POST /api/scraper-simple/curl-based"},
		"list":    {As: apitest.LLM, Do: "POST /api/scraper/url-list-run"},
	} {
		for _, bad := range []string{`a\u0000b`, `a\nb`, `\u007f`, `a\u0085`} {
			c.Name, c.Status, c.Code = name+" "+bad, 400, cmp.Or(c.Code, "invalid_request")
			c.Header = map[string]string{"Idempotency-Key": s.IDs.New().String()}
			c.Body = `{"name":"` + bad + `","groupRef":"` + group.String() + `","groupId":"` +
				group.String() + `","type":"SINGLE_PRODUCT","url":"https://shop.test/",` +
				`"curl":"curl https://shop.test/"}`
			wantNamed(t, s.Call(t, c))
		}
	}
	for _, bad := range []string{"a\x00b", "a\nb"} {
		wantNamed(t, s.Call(t,
			apitest.Scenario{As: apitest.SignIn, Status: 400, Code: "invalid_request",
				Name: "key", Do: "PUT /api/key/generate?name=" + url.QueryEscape(bad)}))
	}
}

// TestFieldsNamesHideNothing: a field's name with characters that change the direction of writing
// would pass for another one. It is refused by its place.
func TestFieldsNamesHideNothing(t *testing.T) {
	s := apitest.Start(t)
	group := s.NewGroup(t, "alice", "g")
	for _, bad := range []string{`n\u202e`, `\u2066n`} {
		a := s.Call(t, apitest.Scenario{Name: bad, As: apitest.User, Do: "PUT /api/scraper",
			Header: map[string]string{"Idempotency-Key": s.IDs.New().String()},
			Status: 400, Code: "schema_validation_failed", Body: `{"name":"a","groupRef":"` +
				group.String() + `","type":"SINGLE_PRODUCT","sourceConfig":{"url":` +
				`"https://shop.test/"},"itemsConfig":[{"name":"n","selector":"h1","kind":"TEXT"},` +
				`{"name":"` + bad + `","selector":"h2","kind":"TEXT"}]}`})
		if !strings.Contains(string(a.Body), `"field":"itemsConfig[1].name"`) {
			t.Errorf("%s", a.Body)
		}
	}
}

// wantNamed requires the answer to blame the name and its control characters.
func wantNamed(t *testing.T, a apitest.Answer) {
	t.Helper()
	said := string(a.Body)
	if !strings.Contains(said, "control characters") || !strings.Contains(said, `"field":"name"`) {
		t.Errorf("%s", a.Body)
	}
}

// TestMicrosAreSaidToBeMicros: wherever the description has an amount of micros, it says that
// micros are millionths of a euro.
func TestMicrosAreSaidToBeMicros(t *testing.T) {
	var document any
	text, err := os.ReadFile("testdata/openapi.json")
	if err == nil {
		err = json.Unmarshal(text, &document)
	}
	if err != nil {
		t.Fatal(err)
	}
	amounts := 0
	check := func(name string, what any) {
		said, _ := what.(map[string]any)["description"].(string)
		if !strings.HasSuffix(name, "Micros") {
			return
		}
		if amounts++; !strings.Contains(strings.ToLower(said), "micros, millionths of a euro") {
			t.Errorf("%s: %q does not say that they are millionths of a euro", name, said)
		}
	}
	var walk func(any)
	walk = func(node any) {
		switch node := node.(type) {
		case []any:
			for _, one := range node {
				walk(one)
			}
		case map[string]any:
			if name, is := node["name"].(string); is && node["in"] != nil {
				check(name, node)
			}
			properties, _ := node["properties"].(map[string]any)
			for name, property := range properties {
				if one, is := property.(map[string]any); is {
					check(name, one)
				}
			}
			for _, one := range node {
				walk(one)
			}
		}
	}
	walk(document)
	if amounts < 20 {
		t.Errorf("only %d amounts are found: the walk does not see the description", amounts)
	}
}
