package customers_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"shoal.dev/shoal/apiserver/internal/apitest"
)

func TestFeedback(t *testing.T) {
	s := apitest.Start(t)
	const give = "POST /api/feedback"
	body := func(text string) string { return fmt.Sprintf(`{"text":%q}`, text) }
	refused := func(name, body, field string) apitest.Scenario {
		return apitest.Scenario{Name: name, As: apitest.User, Do: give, Body: body, Status: 400,
			Has: map[string]any{"errors.0.field": field}}
	}
	s.Run(t,
		apitest.Scenario{Name: "nobody", Do: give, Body: body("x"), Status: 401,
			Code: "unauthorized"},
		apitest.Scenario{Name: "a read key may not", As: apitest.Reader, Do: give,
			Body: body("x"), Status: 403, Code: "scope_rejected"},
		refused("nothing", `{}`, "text"),
		refused("an empty text", body(""), "text"),
		refused("a blank one", body(" \t "), "text"),
		refused("no text", `{"text":1}`, "text"),
		refused("misspelt", `{"text":"x","txt":"y"}`, "txt"),
	)
	for _, character := range []string{"a", "ä", "🐟", `\n`, `\ud83d\udc1f`, `<`} {
		s.Run(t, refused("4,001 of "+character,
			`{"text":"x`+strings.Repeat(character, 4_000)+`"}`, "text"),
			apitest.Scenario{Name: "4,000 of " + character, As: apitest.User, Do: give,
				Body:   `{"text":"x` + strings.Repeat(character, 3_999) + `"}`,
				Status: 200, Has: map[string]any{"createdAt": "2026-01-02T03:04:05.000Z"}})
	}
	again := apitest.Scenario{Name: "the seventh", As: apitest.User, Do: give,
		Body: body("<b>"), Header: map[string]string{"Idempotency-Key": "k"}, Status: 200,
		Has: map[string]any{"text": "<b>"}}
	id := s.Call(t, again).JSON.(map[string]any)["id"]
	again.Name, again.Has = "again by its key", map[string]any{"id": id, "text": "<b>"}
	again.Headers = map[string]string{"Idempotency-Replayed": "true"}
	other := again
	other.Name, other.Body, other.Status, other.Code = "another by its key", body("y"), 422,
		"idempotency_key_reused"
	other.Has, other.Headers = nil, nil
	s.Run(t, again, other)
	for n := 8; n <= 10; n++ {
		s.Run(t, apitest.Scenario{Name: fmt.Sprint("number ", n), As: apitest.LLM, Do: give,
			Body: body("x"), Status: 200})
	}
	eleventh := apitest.Scenario{Name: "the eleventh", As: apitest.SignIn, Do: give,
		Body: body("x"), Status: 429, Code: "feedback_limit_reached",
		Headers: map[string]string{"Retry-After": "75355"}}
	again.Name = "one of before by its key"
	s.Run(t, eleventh, again,
		apitest.Scenario{Name: "another customer", As: apitest.Other, Do: give, Body: body("x"),
			Status: 200})
	s.Clock.Advance(75_355*time.Second - time.Millisecond)
	eleventh.Name, eleventh.As = "a moment before midnight", apitest.User // her key does not expire
	eleventh.Headers = map[string]string{"Retry-After": "1"}
	s.Run(t, eleventh)
	s.Clock.Advance(time.Millisecond)
	s.Run(t, apitest.Scenario{Name: "the next day", As: apitest.User, Do: give, Body: body("x"),
		Status: 200, Has: map[string]any{"createdAt": "2026-01-03T00:00:00.000Z"}})
}
