package llm

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/egress"
	"shoal.dev/shoal/pkg/fault"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const key = Secret("sk-very-secret")

// endpoint starts a server with the handler answer, and makes a client for it.
func endpoint(t *testing.T, config Config, answer http.HandlerFunc) (*Client, *clock.Manual) {
	t.Helper()
	server := httptest.NewServer(answer)
	t.Cleanup(server.Close)
	out, err := egress.New(egress.Config{
		Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(out.Close)
	config.BaseURL, config.Model, config.Key = server.URL+"/v1/", "m", key
	c := clock.NewManual(time.Date(2026, 1, 2, 23, 0, 0, 0, time.UTC))
	client, err := New(config, out, c)
	if err != nil {
		t.Fatal(err)
	}
	return client, c
}

// says returns a handler that answers with a content and its usage.
func says(content string, prompt, completion int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		text, _ := json.Marshal(content)
		_,
			_ = fmt.Fprintf(w,
			`{"choices":[{"finish_reason":"stop","message":{"role":"assistant","content":%s}}],`+
				`"usage":{"prompt_tokens":%d,"completion_tokens":%d}}`, text, prompt, completion)
	}
}

func TestQuestion(t *testing.T) {
	var body []byte
	var path, authorization string
	client, _ := endpoint(t, Config{}, func(w http.ResponseWriter, r *http.Request) {
		body, _ = io.ReadAll(r.Body)
		path, authorization = r.Method+" "+r.URL.Path, r.Header.Get("Authorization")
		says(`{"a":1}`, 10, 5)(w, r)
	})
	got, err := client.Ask(t.Context(), "c", "be brief", "page", json.RawMessage(`{"type":"object"}`))
	if err != nil || string(got) != `{"a":1}` {
		t.Fatal(string(got), err)
	}
	want := `{"model":"m","messages":[{"role":"system","content":"be brief"},{"role":"user","content":"page"}],"max_tokens":4000,` +
		`"response_format":{"type":"json_schema","json_schema":{"name":"answer","schema":{"type":"object"}}}}`
	if diff := cmp.Diff(want, string(body)); diff != "" || path != "POST /v1/chat/completions" ||
		authorization != "Bearer sk-very-secret" {
		t.Errorf("%s, %q, body (-want +got):\n%s", path, authorization, diff)
	}
	if tokens, _ := client.Spent(); tokens != 15 {
		t.Errorf("%d tokens are reckoned with", tokens)
	}
}

func TestAnswers(t *testing.T) {
	for _, c := range []struct {
		name   string
		answer http.HandlerFunc
		want   string
		code   fault.Code
	}{
		{"in a fence", says("```json\n{\"a\":1}\n```", 1, 1), `{"a":1}`, ""},
		{"prose", says("Sure! Here it is.", 1, 1), "", fault.PageModel},
		{"empty", says("", 1, 1), "", fault.PageModel},
		{"cut short", func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w,
				`{"choices":[{"finish_reason":"length","message":{"content":"{}"}}]}`)
		}, "", fault.PageModel},
		{"no choice", func(w http.ResponseWriter, _ *http.Request) {
			_,
				_ = io.WriteString(w, `{}`)
		}, "", fault.PageModel},
		{"another protocol", func(w http.ResponseWriter, _ *http.Request) {
			_,
				_ = io.WriteString(w, `<html>`)
		}, "", fault.PageModel},
		{"error", func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", 500) }, "",
			fault.PageModel},
		{"wrong key", func(w http.ResponseWriter,
			_ *http.Request) {
			http.Error(w, string(key), http.StatusUnauthorized)
		}, "", fault.PageModel},
		{"redirect", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://127.0.0.1:1/", http.StatusTemporaryRedirect)
		}, "", fault.PageModel},
		{"endless", func(w http.ResponseWriter, _ *http.Request) {
			for range maxAnswerBytes / 1000 {
				_, _ = w.Write(bytes.Repeat([]byte("x"), 2000))
			}
		}, "", fault.PageModel},
	} {
		t.Run(c.name, func(t *testing.T) {
			client, _ := endpoint(t, Config{}, c.answer)
			got, err := client.Ask(t.Context(), "c", "s", "u", json.RawMessage(`{}`))
			if string(got) != c.want || fault.CodeOf(err) != c.code {
				t.Errorf("%q, %v", got, err)
			}
			if err != nil && strings.Contains(err.Error(), string(key)) {
				t.Errorf("the error shows the key: %v", err)
			}
		})
	}
}

// TestNewerName: endpoints that know only the newer name of the token bound are asked with that
// from then on.
func TestNewerName(t *testing.T) {
	asked := 0
	client, _ := endpoint(t, Config{MaxAnswer: 7}, func(w http.ResponseWriter, r *http.Request) {
		asked++
		if body, _ := io.ReadAll(r.Body); !bytes.Contains(body,
			[]byte(`"max_completion_tokens":7`)) {
			http.Error(w, `{"error":{"message":"Use 'max_completion_tokens' instead."}}`, 400)
			return
		}
		says(`{}`, 1, 1)(w, r)
	})
	for range 2 {
		if _, err := client.Ask(t.Context(), "c", "s", "u", json.RawMessage(`{}`)); err != nil {
			t.Fatal(err)
		}
	}
	if asked != 3 {
		t.Errorf("%d requests", asked)
	}
}

// TestWithoutSchemas: endpoints that accept no schema as response format get it in the question.
func TestWithoutSchemas(t *testing.T) {
	var bodies []string
	client, _ := endpoint(t, Config{}, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if bodies = append(bodies, string(body)); bytes.Contains(body, []byte(`"json_schema"`)) {
			http.Error(w, `{"error":{"message":"This response_format type is unavailable now"}}`,
				400)
			return
		}
		says(`{"a":1}`, 1, 1)(w, r)
	})
	got, err := client.Ask(t.Context(), "c", "be brief", "page", json.RawMessage(`{"type":"object"}`))
	if err != nil || string(got) != `{"a":1}` || len(bodies) != 2 {
		t.Fatalf("%s, %v after %d requests", got, err, len(bodies))
	}
	want := `{"model":"m","messages":[{"role":"system","content":"be brief\nThe JSON Schema of the answer:\n{\"type\":\"object\"}"},` +
		`{"role":"user","content":"page"}],"max_tokens":4000,"response_format":{"type":"json_object"}}`
	if diff := cmp.Diff(want, bodies[1]); diff != "" {
		t.Errorf("body (-want +got):\n%s", diff)
	}
}

func TestTimeout(t *testing.T) {
	arrived := make(chan struct{})
	client, _ := endpoint(t, Config{Timeout: 5 * time.Second, MaxAnswer: 100},
		func(_ http.ResponseWriter, r *http.Request) {
			close(arrived)
			_, _ = io.Copy(io.Discard, r.Body)
			<-r.Context().Done()
		})
	_, err := client.Ask(t.Context(), "c", "s", strings.Repeat("u", 300), json.RawMessage(`{}`))
	select {
	case <-arrived:
	default:
		t.Fatal("the question did not arrive within its time")
	}
	if fault.CodeOf(err) != fault.PageTimeout {
		t.Errorf("%v", err)
	}
	if tokens, _ := client.Spent(); tokens < 200 {
		t.Errorf("only %d tokens of a question that may have been worked on are reckoned with",
			tokens)
	}
}

func TestCaps(t *testing.T) {
	askFor := func(c *Client, customer string, size int) fault.Code {
		_, err := c.Ask(t.Context(), customer, "", strings.Repeat("x", size), json.RawMessage(`{}`))
		return fault.CodeOf(err)
	}
	ask := func(c *Client, size int) fault.Code { return askFor(c, "c", size) }
	t.Run("page", func(t *testing.T) {
		client, _ := endpoint(t, Config{MaxAnswer: 100, MaxPageTokens: 200}, says(`{}`, 1, 1))
		if ask(client, 200) != "" || ask(client, 400) != fault.PageModelLimit {
			t.Error("the cap of a page does not hold")
		}
	})
	t.Run("page's cost", func(t *testing.T) {
		client, _ := endpoint(t,
			Config{MaxAnswer: 100, PriceIn: 1000, PriceOut: 10_000, MaxPageMicros: 1_100},
			says(`{}`, 1, 1))
		if ask(client, 200) != "" || ask(client, 600) != fault.PageModelLimit {
			t.Error("the cap of a page's cost does not hold")
		}
	})
	t.Run("day", func(t *testing.T) {
		client, clock := endpoint(t,
			Config{MaxAnswer: 100, MaxDayTokens: 300, PriceIn: 1000, PriceOut: 2000,
				MaxDayMicros: 1_000_000}, says(`{}`, 100, 50))
		for _, customer := range []string{"a", "b"} {
			if askFor(client, customer, 30) != "" {
				t.Error("the cap of a day holds too early")
			}
		}
		if tokens, micros := client.Spent(); tokens != 300 || micros != 400 {
			t.Errorf("%d tokens for %d", tokens, micros)
		}
		if ask(client, 30) != fault.PageModelLimit {
			t.Error("the cap of a day does not hold")
		}
		clock.Advance(time.Hour)
		if ask(client, 30) != "" {
			t.Error("a new day has the old one's cap")
		}
	})
	for name, config := range map[string]Config{
		"a customer's share":      {MaxAnswer: 100, MaxDayTokens: 10_000},
		"a customer's share paid": {MaxAnswer: 100, PriceOut: 1000, MaxDayMicros: 10_000},
	} {
		t.Run(name, func(t *testing.T) {
			client, clock := endpoint(t, config, says(`{}`, 0, 100))
			n := 0
			for ; askFor(client, "greedy", 3) == ""; n++ {
			}
			if n < 75 || n > 80 {
				t.Errorf("one alone asked %d of some 100 questions", n)
			}
			for range 5 {
				if code := askFor(client, "other", 3); code != "" {
					t.Fatalf("another customer: %v", code)
				}
			}
			clock.Advance(24 * time.Hour)
			if code := askFor(client, "greedy", 3); code != "" {
				t.Errorf("on the next day: %v", code)
			}
		})
	}
	t.Run("day's cost", func(t *testing.T) {
		client, _ := endpoint(t, Config{MaxAnswer: 100, PriceOut: 10_000, MaxDayMicros: 1_500},
			says(`{}`, 100, 60))
		if ask(client, 30) != "" || ask(client, 30) != fault.PageModelLimit {
			t.Error("the cap of a day's cost does not hold")
		}
	})
}

// TestGuard: unless the operator allows it, the endpoint must not be private. The key appears
// nowhere.
func TestGuard(t *testing.T) {
	out, err := egress.New(egress.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	client, err := New(Config{BaseURL: "http://127.0.0.1:9/v1", Model: "m", Key: key}, out,
		clock.System{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Ask(t.Context(), "c", "s", "u",
		json.RawMessage(`{}`)); fault.CodeOf(err) != fault.PageModel {
		t.Errorf("%v", err)
	}
	if tokens, _ := client.Spent(); tokens != 0 {
		t.Errorf("a question that nobody heard cost %d tokens", tokens)
	}
	var logged bytes.Buffer
	log := slog.New(slog.NewTextHandler(&logged, nil))
	log.Info("model", "client", client, "config",
		fmt.Sprintf("%v %+v", client.config, client.config), "key", key)
	if strings.Contains(logged.String(), string(key)) {
		t.Errorf("the key is in the log: %s", &logged)
	}
	for _, bad := range []Config{{BaseURL: "http://h/"}, {Model: "m"},
		{BaseURL: "ftp://h/", Model: "m"}} {
		if _, err := New(bad, out, clock.System{}); err == nil {
			t.Errorf("%+v is taken", bad)
		}
	}
}
