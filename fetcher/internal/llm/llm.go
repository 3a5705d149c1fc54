// Package llm owns the call of a language model: one question whose answer must match a schema. It
// works with any endpoint that has OpenAI's chat completions, within caps of tokens and cost. The
// caller chooses the question and judges the answer, which this package does not interpret.
package llm

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/egress"
	"shoal.dev/shoal/pkg/fault"
)

// Secret is a key that never appears in a log or an error.
type Secret string

// String hides the key.
func (Secret) String() string { return "…" }

// LogValue hides the key.
func (Secret) LogValue() slog.Value { return slog.StringValue("…") }

// Config says which model to ask, and how much it may cost. Money is in micros.
type Config struct {
	BaseURL string // such as https://api.openai.com/v1; the path /chat/completions is added
	Model   string
	Key     Secret        // "" sends none
	Timeout time.Duration // of one question; 30 s when 0

	MaxAnswer     int   // tokens of one answer; 4,000 when 0
	MaxPageTokens int64 // tokens of one page, question and answer; 40,000 when 0
	MaxDayTokens  int64 // tokens of this process per UTC day; 5,000,000 when 0
	// Prices per 1,000 tokens; without them the cost is unknown and not capped.
	PriceIn, PriceOut int64
	MaxPageMicros     int64 // cost of one page; 0: only tokens are capped
	MaxDayMicros      int64 // cost of this process per UTC day; likewise
}

func (c *Config) setDefaults() {
	if c.Timeout <= 0 {
		c.Timeout = 30 * time.Second
	}
	if c.MaxAnswer <= 0 {
		c.MaxAnswer = 4_000
	}
	if c.MaxPageTokens <= 0 {
		c.MaxPageTokens = 40_000
	}
	if c.MaxDayTokens <= 0 {
		c.MaxDayTokens = 5_000_000
	}
	c.BaseURL = strings.TrimSuffix(c.BaseURL, "/")
}

// Client asks a language model. It is safe for concurrent use.
type Client struct {
	config Config
	out    *egress.Client
	clock  clock.Clock
	// newName: the endpoint wants the token bound under its newer name.
	newName atomic.Bool

	mu   sync.Mutex
	day  string // of what follows, UTC
	used cost
	of   map[string]cost // by customer
}

// shareOfDay bounds a customer's use of the daily caps: this many times what is left. One customer
// alone gets four fifths, two get four ninths each. Others always find some left.
const shareOfDay = 4

// New makes a client with its own egress client. An operator's endpoint may be in a private range
// that pages must not reach.
func New(config Config, out *egress.Client, c clock.Clock) (*Client, error) {
	config.setDefaults()
	if config.Model == "" {
		return nil, errors.New("llm: the name of a model is needed")
	}
	if !strings.HasPrefix(config.BaseURL, "http://") &&
		!strings.HasPrefix(config.BaseURL, "https://") {
		return nil, errors.New("llm: the endpoint must be http or https")
	}
	return &Client{config: config, out: out, clock: c}, nil
}

// maxAnswerBytes bounds a whole response body.
const maxAnswerBytes = 2 << 20

// Ask asks one question for a customer and returns the answer's JSON text. schema is the schema of
// the answer. Errors have codes: model_limit_reached, timeout, model_unavailable. A cancelled
// context returns its own error.
func (c *Client) Ask(ctx context.Context, customer, system, user string,
	schema json.RawMessage) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, c.config.Timeout)
	defer cancel()
	day, held, err := c.reserve(customer, len(system)+len(user)+len(schema))
	if err != nil {
		return nil, err
	}
	used := held // assumed until the endpoint reports: it may process a question that timed out
	defer func() { c.returnUnused(customer, day, held, used) }()
	answer, err := c.call(ctx, system, user, schema)
	if err != nil {
		if fault.CodeOf(err) == fault.PageModel {
			used = cost{}
		}
		return nil, err
	}
	if u := answer.Usage; u.Prompt+u.Completion > 0 {
		used = c.costOf(u.Prompt, u.Completion)
	}
	return answer.text()
}

func timedOut(ctx context.Context) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fault.Wrap(fault.PageTimeout, ctx.Err(), "the model took too long")
	}
	return ctx.Err()
}

// cost is the cost of a question.
type cost struct{ tokens, micros int64 }

func (c *Client) costOf(prompt, completion int64) cost {
	return cost{prompt + completion,
		(prompt*c.config.PriceIn + completion*c.config.PriceOut + 999) / 1_000}
}

// bytesPerToken is the least text per token, on the average of a page.
const bytesPerToken = 3

// plus returns the sum of two costs.
func (c cost) plus(d cost) cost { return cost{c.tokens + d.tokens, c.micros + d.micros} }

// reserve takes the highest possible cost of a question from the caps and the customer's share.
func (c *Client) reserve(customer string, size int) (day string, most cost, err error) {
	most = c.costOf(int64(size/bytesPerToken+1), int64(c.config.MaxAnswer))
	if most.tokens > c.config.MaxPageTokens || c.config.MaxPageMicros > 0 &&
		most.micros > c.config.MaxPageMicros {
		return "", cost{}, fault.New(fault.PageModelLimit,
			"the page would cost more than one page may")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if day = c.clock.Now().UTC().Format(time.DateOnly); day != c.day {
		c.day, c.used, c.of = day, cost{}, map[string]cost{}
	}
	used, own := c.used.plus(most), c.of[customer].plus(most)
	left := cost{c.config.MaxDayTokens - used.tokens, c.config.MaxDayMicros - used.micros}
	capped := c.config.MaxDayMicros > 0
	switch {
	case left.tokens < 0, capped && left.micros < 0:
		return "", cost{}, fault.New(fault.PageModelLimit, "the model's cap of the day is reached")
	case own.tokens > shareOfDay*left.tokens, capped && own.micros > shareOfDay*left.micros:
		return "", cost{}, fault.New(fault.PageModelLimit,
			"the customer's share of the model's cap of the day is reached")
	}
	c.used, c.of[customer] = used, own
	return day, most, nil
}

// returnUnused gives back the unused part of a reservation, unless its day is over.
func (c *Client) returnUnused(customer, day string, held, used cost) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if day == c.day {
		less := cost{used.tokens - held.tokens, used.micros - held.micros}
		c.used, c.of[customer] = c.used.plus(less), c.of[customer].plus(less)
	}
}

// question is a request in OpenAI's format.
type question struct {
	Model               string    `json:"model"`
	Messages            []message `json:"messages"`
	MaxTokens           int       `json:"max_tokens,omitempty"`
	MaxCompletionTokens int       `json:"max_completion_tokens,omitempty"`
	ResponseFormat      format    `json:"response_format"`
}

type message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

type format struct {
	Type       string      `json:"type"`
	JSONSchema *jsonSchema `json:"json_schema,omitempty"`
}

type jsonSchema struct {
	Name   string          `json:"name"`
	Schema json.RawMessage `json:"schema"`
}

// answer is the part of a response that is used.
type answer struct {
	Choices []struct {
		FinishReason string `json:"finish_reason"`
		Message      struct {
			Content string `json:"content"`
		} `json:"message"`
	} `json:"choices"`
	Usage struct {
		Prompt     int64 `json:"prompt_tokens"`
		Completion int64 `json:"completion_tokens"`
	} `json:"usage"`
}

// call makes the exchange. If the endpoint wants the newer name of the token bound, it repeats the
// request with that. If the endpoint does not accept a schema as response format, it repeats the
// request with the schema in the question.
func (c *Client) call(ctx context.Context, system, user string, schema json.RawMessage) (*answer,
	error) {
	bare := false
	for {
		newer := c.newName.Load()
		body, err := json.Marshal(c.question(system, user, schema, newer, bare))
		if err != nil {
			return nil, fault.Wrap(fault.PageModel, err, "the question cannot be written")
		}
		status, text, err := c.exchange(ctx, body)
		refuses := func(member string) bool {
			return (status == 400 || status == 422) && bytes.Contains(text, []byte(member))
		}
		switch {
		case err != nil:
			return nil, err
		case !newer && refuses("max_completion_tokens"):
			c.newName.Store(true)
			continue
		case !bare && (refuses("response_format") || refuses("json_schema")):
			bare = true
			continue
		case status != 200:
			return nil, fault.New(fault.PageModel, "the model's endpoint answered with status %d",
				status)
		}
		a := new(answer)
		if err := json.Unmarshal(text, a); err != nil {
			return nil, fault.Wrap(fault.PageModel, err,
				"the model's endpoint did not answer as one")
		}
		return a, nil
	}
}

// question builds a request: with the newer name of the token bound if newer, with the schema in
// the question if bare.
func (c *Client) question(system, user string, schema json.RawMessage, newer, bare bool) *question {
	q := &question{Model: c.config.Model, MaxTokens: c.config.MaxAnswer}
	if newer {
		q.MaxTokens, q.MaxCompletionTokens = 0, c.config.MaxAnswer
	}
	q.ResponseFormat = format{Type: "json_schema", JSONSchema: &jsonSchema{"answer", schema}}
	if bare {
		q.ResponseFormat = format{Type: "json_object"}
		system += "\nThe JSON Schema of the answer:\n" + string(schema)
	}
	q.Messages = []message{{"system", system}, {"user", user}}
	return q
}

// exchange sends a request and returns a copy of the response body.
func (c *Client) exchange(ctx context.Context, body []byte) (status int, text []byte, err error) {
	header := []egress.Field{{Name: "Content-Type", Value: "application/json"},
		{Name: "Accept", Value: "application/json"}}
	if c.config.Key != "" {
		header = append(header,
			egress.Field{Name: "Authorization", Value: "Bearer " + string(c.config.Key)})
	}
	response, err := c.out.Do(ctx,
		&egress.Request{Method: "POST", URL: c.config.BaseURL + "/chat/completions", Header: header,
			Body: body, MaxBody: maxAnswerBytes, Private: true})
	switch {
	case err != nil && ctx.Err() != nil:
		return 0, nil, timedOut(ctx)
	case fault.CodeOf(err) == fault.PageTimeout:
		return 0, nil, fault.Wrap(fault.PageTimeout, err, "the model took too long")
	case err != nil:
		return 0, nil, fault.Wrap(fault.PageModel, err, "the model cannot be reached")
	}
	defer response.Release()
	return response.Status, bytes.Clone(response.Body), nil
}

// text returns the JSON of a complete answer.
func (a *answer) text() ([]byte, error) {
	if len(a.Choices) == 0 {
		return nil, fault.New(fault.PageModel, "the model gave no answer")
	}
	choice := a.Choices[0]
	if choice.FinishReason != "stop" && choice.FinishReason != "" {
		return nil, fault.New(fault.PageModel, "the model's answer is not complete (%.40q)",
			choice.FinishReason)
	}
	content := strings.TrimSpace(choice.Message.Content)
	if inner, ok := strings.CutPrefix(content, "```"); ok { // many models wrap JSON in a code block
		inner = strings.TrimPrefix(inner, "json")
		content = strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(inner), "```"))
	}
	if !json.Valid([]byte(content)) {
		return nil, fault.New(fault.PageModel, "the model's answer is no JSON")
	}
	return []byte(content), nil
}

// Spent returns what this process has used or reserved on the day of its last question.
func (c *Client) Spent() (tokens, micros int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.used.tokens, c.used.micros
}

// String describes the client without its key.
func (c *Client) String() string {
	return fmt.Sprintf("%s at %s", c.config.Model,
		c.config.BaseURL)
}
