package webhooks_test

import (
	"strings"
	"testing"
	"time"

	"shoal.dev/shoal/apiserver/internal/apitest"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/ids"
)

const (
	path = "/api/webhooks"
	body = `{"url":"https://shop.test/hook","events":["API_KEY_CREATED"]}`
)

func post(name, to, body string) apitest.Scenario {
	return apitest.Scenario{Name: name, As: apitest.User, Do: "POST " + to, Body: body}
}

// create makes a webhook for alice.
func create(t *testing.T, s *apitest.Server) (answer apitest.Answer, at string) {
	t.Helper()
	sc := post("create", path, body)
	sc.Status = 201
	answer = s.Call(t, sc)
	return answer, path + "/" + answer.Text("id")
}

func TestWhatIsRefused(t *testing.T) {
	s := apitest.Start(t)
	refused := func(name, body, code, field string) apitest.Scenario {
		sc := post(name, path, body)
		sc.Status, sc.Code, sc.Has = 400, code, map[string]any{"errors.0.field": field}
		return sc
	}
	reader := post("a read key may not", path, body)
	reader.As, reader.Status, reader.Code = apitest.Reader, 403, "scope_rejected"
	s.Run(t, reader,
		refused("no address", `{"events":["API_KEY_CREATED"]}`, "invalid_request", "url"),
		refused("a private address", strings.Replace(body, "shop.test", "10.0.0.1", 1),
			"INVALID_URL", "url"),
		refused("the metadata of a cloud", strings.Replace(body, "shop.test", "169.254.169.254", 1),
			"INVALID_URL", "url"),
		refused("a password", strings.Replace(body, "shop.test", "a:b@shop.test", 1),
			"INVALID_URL", "url"),
		refused("another scheme", strings.Replace(body, "https", "ftp", 1), "INVALID_URL", "url"),
		refused("a long address", strings.Replace(body, "hook", strings.Repeat("x", 1010), 1),
			"invalid_request", "url"),
		refused("no events", `{"url":"https://shop.test/","events":[]}`, "invalid_request",
			"events"),
		refused("unknown events", `{"url":"https://shop.test/","events":["RUN_FAILED"]}`,
			"invalid_request", "events[0]"),
		refused("an event twice", strings.Replace(body, `"API_KEY_CREATED"`,
			`"API_KEY_CREATED","API_KEY_CREATED"`, 1), "invalid_request", "events[1]"),
		apitest.Scenario{Name: "nothing of that was kept", As: apitest.Reader, Do: "GET " + path,
			Status: 200, Has: map[string]any{"webhooks": []any{}}},
	)
}

func TestWebhooks(t *testing.T) {
	s := apitest.Start(t)
	made, at := create(t, s)
	if secret := made.Text("secret"); !strings.HasPrefix(secret, "whsec_") {
		t.Errorf("the secret is %q", secret)
	}
	foreign := func(do, body string) apitest.Scenario {
		return apitest.Scenario{Name: "foreign " + do, As: apitest.Other, Do: do, Body: body,
			Status: 400, Code: "not_found"}
	}
	send := post("test", at+"/test", "")
	send.Status, send.Has = 202, map[string]any{"event": "WEBHOOK_TEST", "state": "PENDING",
		"tries": 0, "status": nil, "error": nil}
	sent := s.Call(t, send)
	delivery := at + "/deliveries/" + sent.Text("id") + "/redeliver"
	s.Run(t,
		foreign("GET "+at, ""), foreign("PUT "+at, body), foreign("DELETE "+at, ""),
		foreign("POST "+at+"/rotate", "{}"), foreign("POST "+at+"/test", ""),
		foreign("GET "+at+"/deliveries", ""), foreign("POST "+delivery, ""),
		apitest.Scenario{Name: "bob has none", As: apitest.Other, Do: "GET " + path, Status: 200,
			Has: map[string]any{"webhooks": []any{}}},
		apitest.Scenario{Name: "list", As: apitest.Reader, Do: "GET " + path, Status: 200,
			Has: map[string]any{"webhooks.0.url": "https://shop.test/hook",
				"webhooks.0.enabled": true, "webhooks.0.disabledBecause": nil,
				"webhooks.0.failingSince": nil},
			Lacks: []string{"webhooks.0.secret", "webhooks.1"}},
		apitest.Scenario{Name: "one", As: apitest.Reader, Do: "GET " + at, Status: 200,
			Has:   map[string]any{"events": []any{"API_KEY_CREATED"}, "formerSecretUntil": nil},
			Lacks: []string{"secret"}},
		apitest.Scenario{Name: "log", As: apitest.Reader, Do: "GET " + at + "/deliveries",
			Status: 200, Has: map[string]any{"totalElements": 1,
				"content.0.id": sent.Text("id")}},
		apitest.Scenario{Name: "beyond the log", As: apitest.Reader,
			Do: "GET " + at + "/deliveries?page=1&size=1", Status: 200,
			Has: map[string]any{"totalElements": 1, "content": []any{}}},
		apitest.Scenario{Name: "again", As: apitest.User, Do: "POST " + delivery, Status: 202,
			Has: map[string]any{"id": sent.Text("id"), "state": "PENDING"}},
		apitest.Scenario{Name: "unknown delivery", As: apitest.User,
			Do:     "POST " + at + "/deliveries/" + ids.ID{9}.String() + "/redeliver",
			Status: 400, Code: "not_found"},
		apitest.Scenario{Name: "off", As: apitest.User, Do: "PUT " + at, Status: 200,
			Body: `{"url":"https://b.test/","events":["RUN_ANOMALY"],"enabled":false}`,
			Has: map[string]any{"enabled": false, "disabledBecause": "STOPPED",
				"url": "https://b.test/", "events": []any{"RUN_ANOMALY"}},
			Lacks: []string{"secret"}},
		apitest.Scenario{Name: "what was pending failed", As: apitest.Reader,
			Do: "GET " + at + "/deliveries", Status: 200,
			Has: map[string]any{"content.0.state": "FAILED", "content.0.nextTry": nil,
				"content.0.error": "The webhook was switched off."}},
		apitest.Scenario{Name: "on", As: apitest.User, Do: "PUT " + at, Status: 200, Body: body,
			Has: map[string]any{"enabled": true, "disabledBecause": nil}},
	)
	rotate := post("rotate", at+"/rotate", "{}")
	rotate.Status, rotate.Has = 200, map[string]any{"formerSecretUntil": s.Clock.Now().Add(
		24 * time.Hour).UTC().Format("2006-01-02T15:04:05.000Z")}
	if again := s.Call(t, rotate).Text("secret"); again == made.Text("secret") {
		t.Error("the secret is what it was")
	}
	at0 := post("at once", at+"/rotate", `{"overlapHours":0}`)
	at0.Status, at0.Has = 200, map[string]any{"formerSecretUntil": nil}
	s.Run(t, at0,
		apitest.Scenario{Name: "delete", As: apitest.User, Do: "DELETE " + at, Status: 204},
		apitest.Scenario{Name: "gone", As: apitest.User, Do: "GET " + at, Status: 400,
			Code: "not_found"},
	)
	for range 10 {
		create(t, s)
	}
	many := post("one too many", path, body)
	many.Status, many.Code = 402, "limit_reached"
	s.Run(t, many)
}

// TestDisabledWebhookIsTold: the notification names the webhook.
func TestDisabledWebhookIsTold(t *testing.T) {
	s := apitest.Start(t)
	_, at := create(t, s)
	id, err := ids.Parse(strings.TrimPrefix(at, path+"/"))
	if err != nil {
		t.Fatal(err)
	}
	sc := post("test", at+"/test", "")
	sc.Status = 202
	s.Call(t, sc)
	message := s.Client.View().Webhook(id)
	s.Client.View().Deliveries(message.ID, func(d *client.Delivery) bool {
		s.Client.Must(t, client.RecordDeliveries{Tried: []client.TriedDelivery{{Webhook: id,
			Message: d.Notice.ID, Status: 410, Error: "The receiver answered 410."}}})
		return true
	})
	s.Run(t,
		apitest.Scenario{Name: "told", As: apitest.Reader, Do: "GET /api/notifications",
			Status: 200, Has: map[string]any{"content.0.event": "WEBHOOK_DISABLED",
				"content.0.webhookId": id.String(), "content.0.jobId": nil}},
		apitest.Scenario{Name: "off", As: apitest.Reader, Do: "GET " + at, Status: 200,
			Has: map[string]any{"enabled": false, "disabledBecause": "GONE"}},
	)
}

// A repeated creation or rotation under the same key returns the first secret.
func TestRepeatedCallsAnswerTheFirstSecret(t *testing.T) {
	s := apitest.Start(t)
	key := map[string]string{"Idempotency-Key": "one"}
	makes := post("make", path, body)
	makes.Status, makes.Header = 201, key
	made, again := s.Call(t, makes), s.Call(t, makes)
	if string(made.Body) != string(again.Body) || made.Text("secret") == "" ||
		again.Header.Get("Idempotency-Replayed") != "true" {
		t.Errorf("%s, then %s", made.Body, again.Body)
	}
	if hooks := s.Client.View().Webhooks("alice"); len(hooks) != 1 {
		t.Errorf("there are %d", len(hooks))
	}
	other := post("another body", path, `{"url":"https://c.test/","events":["RUN_ANOMALY"]}`)
	other.Status, other.Code, other.Header = 422, "idempotency_key_reused", key
	s.Run(t, other)

	rotate := post("rotate", path+"/"+made.Text("id")+"/rotate", "{}")
	rotate.Status, rotate.Header = 200, key
	rotated, again := s.Call(t, rotate), s.Call(t, rotate)
	if string(rotated.Body) != string(again.Body) ||
		rotated.Text("secret") == made.Text("secret") ||
		again.Header.Get("Idempotency-Replayed") != "true" {
		t.Errorf("%s, then %s", rotated.Body, again.Body)
	}
}
