package e2e

import (
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"shoal.dev/shoal/e2e/suite"
	"shoal.dev/shoal/testkit/process"
)

// TestDemo runs the demo twice; the second run finds the data of the first. The printed link of
// each signs one browser in, once.
func TestDemo(t *testing.T) {
	data := t.TempDir()
	for range 2 {
		p := startsDemo(t, data)
		ctx := suite.Within(t, suite.Patience)
		who := suite.Client{Server: p.Server(), Token: p.Key()}
		suite.CheckWallet(t, who)
		if jobs := suite.Must(who.Jobs(ctx, ""))(t); jobs[0].State != "COMPLETED" ||
			jobs[0].TotalRequests != 2000 {
			t.Errorf("%+v", jobs[0])
		}
		opensDemo(t, p)
		if _, err := p.Stop(suite.StopLimit); err != nil {
			t.Fatal(err)
		}
	}
}

// startsDemo starts the demo, and waits until its run is over.
func startsDemo(t *testing.T, data string) *process.Process {
	t.Helper()
	p, err := process.Start(process.Config{Binary: binary(t), Command: "demo", Data: data})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Kill)
	ctx := suite.Within(t, suite.Patience)
	if err := p.Ready(ctx); err != nil {
		t.Fatal(err)
	}
	for !strings.Contains(p.Said(), "Serving until") { // the last line of its output
		select {
		case <-p.Ended():
			t.Fatalf("the demo ended: %s", p.Said())
		case <-ctx.Done():
			t.Fatalf("the demo does not end its run: %s", p.Said())
		case <-time.After(10 * time.Millisecond):
		}
	}
	return p
}

var (
	demoLink  = regexp.MustCompile(`http://\S+/sign-in/once\?link=(\S+)`)
	formToken = regexp.MustCompile(`name="token" value="([^"]+)"`)
)

// opensDemo opens the link that the demo has printed, as a browser does, and again as another.
func opensDemo(t *testing.T, p *process.Process) {
	t.Helper()
	link := demoLink.FindStringSubmatch(p.Said())
	if link == nil {
		t.Fatalf("the demo prints no link: %s", p.Said())
	}
	if status, page := opensLink(t, p.Server(), link[0], link[1]); status != http.StatusOK ||
		!strings.Contains(page, "<code>self</code>, who administers") {
		t.Errorf("the link: %d %s", status, page)
	}
	if status, page := opensLink(t, p.Server(), link[0], link[1]); status !=
		http.StatusUnauthorized {
		t.Errorf("the link that was used: %d %s", status, page)
	}
}

// opensLink sends the form of a one-time link by a new browser. It returns the page of the account,
// or the refusal.
func opensLink(t *testing.T, server, link, secret string) (status int, page string) {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	browser := &http.Client{Jar: jar, Timeout: suite.Patience}
	ask := func(method, address string, form url.Values) (int, string) {
		t.Helper()
		request, err := http.NewRequestWithContext(t.Context(), method, address,
			strings.NewReader(form.Encode()))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		response, err := browser.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = response.Body.Close() }() // read-only
		body, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		return response.StatusCode, string(body)
	}
	ask("GET", link, nil)
	_, page = ask("GET", server+"/sign-in", nil) // it has a form's token even for a used link
	token := formToken.FindStringSubmatch(page)
	if token == nil {
		t.Fatalf("no form: %s", page)
	}
	if status, page = ask("POST", server+"/sign-in/once", url.Values{"token": {token[1]},
		"link": {secret}}); status != http.StatusOK {
		return status, page
	}
	if !strings.Contains(page, "/assets/") {
		t.Errorf("the link does not lead to the portal: %s", page)
	}
	return ask("GET", server+"/sign-in", nil)
}
