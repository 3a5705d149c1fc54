package fetcher

import (
	"shoal.dev/shoal/fetcher/internal/llm"
	"shoal.dev/shoal/fetcher/internal/unit"
	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/egress"
	"shoal.dev/shoal/pkg/telemetry"
)

// Model is a language model. Ask returns the JSON of an answer; its errors have page codes.
type Model = unit.Model

// ModelConfig says which language model to ask, and how much it may cost.
type ModelConfig = llm.Config

// ModelKey is a model's key, which is never logged.
type ModelKey = llm.Secret

// NewModel makes a model that has its own egress client. The endpoint belongs to the operator, who
// may allow it a private range that pages never reach.
func NewModel(config ModelConfig, out *egress.Client, c clock.Clock, to *telemetry.Metrics) (Model,
	error) {
	client, err := llm.New(config, out, c)
	if err != nil {
		return nil, err
	}
	telemetry.NewSamples(func() (*llm.Client, bool) { return client, true }).
		Gauge("shoal_fetcher_model_tokens", "Tokens that the language model used on the UTC day "+
			"when it was last asked.",
			func(c *llm.Client) float64 { tokens, _ := c.Spent(); return float64(tokens) }).
		Gauge("shoal_fetcher_model_micros", "Cost of these tokens in micros (millionths of a "+
			"euro), if prices are set.",
			func(c *llm.Client) float64 { _, micros := c.Spent(); return float64(micros) }).
		Declare(to)
	return client, nil
}
