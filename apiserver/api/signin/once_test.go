package signin_test

import (
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"shoal.dev/shoal/apiserver"
	"shoal.dev/shoal/apiserver/internal/apitest"
)

// The demo's link signs in one browser, once. Opening it does not use it up.
func TestOnceSignsInOnce(t *testing.T) {
	token := regexp.MustCompile(`name="token" value="([^"]+)"`)
	var link string
	s := start(t, func(c *apiserver.Config) {
		c.Once, link = apiserver.NewOnce(email, c.Clock.Now().Add(15*time.Minute))
	})
	visit := func(browser *http.Client, method, path string, form url.Values,
		headers ...string) (int, string) {
		t.Helper()
		request, err := http.NewRequestWithContext(t.Context(), method, s.URL+path,
			strings.NewReader(form.Encode()))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		for i := 0; i < len(headers); i += 2 {
			request.Header.Set(headers[i], headers[i+1])
		}
		response, err := browser.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = response.Body.Close() }() // it was only read
		body, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		return response.StatusCode, string(body)
	}
	newBrowser := func() *http.Client {
		jar, err := cookiejar.New(nil)
		if err != nil {
			t.Fatal(err)
		}
		return &http.Client{Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse
		}}
	}
	browser := newBrowser()
	for range 2 {
		if status, page := visit(browser, "GET", link, nil); status != 200 ||
			!strings.Contains(page, email) {
			t.Fatalf("the page: %d %s", status, page)
		}
	}
	_, page := visit(browser, "GET", link, nil)
	form := url.Values{"token": {token.FindStringSubmatch(page)[1]}, "link": {"another"}}
	if status, page := visit(browser, "POST", "/sign-in/once", form); status != 401 ||
		!strings.Contains(page, "too old") {
		t.Errorf("another link: %d %s", status, page)
	}
	form.Set("link", link[strings.IndexByte(link, '=')+1:])
	if status, _ := visit(newBrowser(), "POST", "/sign-in/once", form); status != 400 {
		t.Errorf("a form of another browser: %d", status)
	}
	if status, _ := visit(browser, "POST", "/sign-in/once", form, "Sec-Fetch-Site",
		"cross-site"); status != 403 {
		t.Errorf("a form of another site: %d", status)
	}
	if status, page := visit(browser, "POST", "/sign-in/once", form); status != 303 {
		t.Fatalf("the link: %d %s", status, page)
	}
	if status, page := visit(browser, "GET", "/sign-in", nil); status != 200 ||
		!strings.Contains(page, "<code>alice</code>") {
		t.Errorf("signed in: %d %s", status, page)
	}
	other := newBrowser()
	if _, page := visit(other, "GET", link, nil); strings.Contains(page, "<form") {
		t.Errorf("a link that was used: %s", page)
	}
	_, page = visit(other, "GET", "/sign-in", nil)
	form.Set("token", token.FindStringSubmatch(page)[1])
	if status, _ := visit(other, "POST", "/sign-in/once", form); status != 401 {
		t.Errorf("a link that was used: %d", status)
	}
}

// A service without the demo has no such link.
func TestOnceIsTheDemosAlone(t *testing.T) {
	s := start(t)
	s.Run(t, apitest.Scenario{Name: "none", Do: "GET /sign-in/once?link=x", Status: 404,
		Code: "route_not_found"})
}
