package service

import (
	"errors"
	"fmt"
	"math"
	"net/netip"
	"os"
	"strings"
	"time"

	"shoal.dev/shoal/fetcher"
	"shoal.dev/shoal/pkg/egress"
	"shoal.dev/shoal/pkg/price"
)

// ModelFlags say which language model AI_CONF scrapers may ask for what a page does not state, and
// how much they may use it.
type ModelFlags struct {
	URL        string         `group:"model" help:"Endpoint with OpenAI's chat completions API, such as https://api.openai.com/v1. It is asked for what AI_CONF does not find stated on a page; none by default." placeholder:"URL"`
	Name       string         `group:"model" help:"Name of the model." placeholder:"NAME"`
	Key        string         `group:"model" help:"API key of the endpoint. Prefer SHOAL_MODEL_KEY or --model-key-file to the command line." placeholder:"KEY"`
	KeyFile    string         `group:"model" help:"File with the API key of the endpoint." type:"path" placeholder:"FILE"`
	Allow      []netip.Prefix `group:"model" help:"Private address ranges that the model's endpoint may be in. Pages are never fetched from them." placeholder:"CIDR"`
	Timeout    time.Duration  `group:"model" help:"Timeout of one question, at most --fetch-timeout." default:"30s"`
	MaxAnswer  int            `group:"model" help:"Most tokens of one answer." default:"4000"`
	PageTokens int64          `group:"model" help:"Most tokens for one page, question and answer together." default:"40000"`
	DayTokens  int64          `group:"model" help:"Most tokens of this process in one UTC day. One customer alone may use four fifths." default:"5000000"`
	PriceIn    float64        `group:"model" help:"EUR per million input tokens. Without prices the cost caps do not apply." default:"0"`
	PriceOut   float64        `group:"model" help:"EUR per million output tokens." default:"0"`
	PageCost   float64        `group:"model" help:"Most EUR for one page; 0: only tokens are capped." default:"0"`
	DayCost    float64        `group:"model" help:"Most EUR of this process in one UTC day; 0: only tokens are capped." default:"0"`
}

func (m *ModelFlags) check() error {
	if m.URL == "" && m.Name == "" {
		return nil
	}
	costs := []float64{m.PriceIn, m.PriceOut, m.PageCost, m.DayCost}
	for _, eur := range costs {
		if !(eur >= 0 && eur <= 1e6) {
			return errors.New("--model-price-in, --model-price-out, --model-page-cost, " +
				"--model-day-cost: 0 to 1,000,000")
		}
	}
	switch {
	case m.URL == "" || m.Name == "":
		return errors.New("--model-url and --model-name go together")
	case !strings.HasPrefix(m.URL, "http://") && !strings.HasPrefix(m.URL, "https://"):
		return errors.New("--model-url: want http:// or https://")
	case m.Key != "" && m.KeyFile != "":
		return errors.New("--model-key, --model-key-file: only one of them")
	case (m.PageCost > 0 || m.DayCost > 0) && m.PriceIn == 0 && m.PriceOut == 0:
		return errors.New("--model-page-cost, --model-day-cost: need --model-price-in and " +
			"--model-price-out")
	case m.Timeout <= 0 || m.MaxAnswer < 1 || m.PageTokens < 1 || m.DayTokens < 1:
		return errors.New("--model-timeout, --model-max-answer, --model-page-tokens, " +
			"--model-day-tokens: above 0")
	}
	return nil
}

// openModel makes the model that the fetcher asks, nil when none is configured.
func (n *node) openModel() (fetcher.Model, error) {
	m := n.config.Model
	if m.URL == "" {
		return nil, nil
	}
	key := m.Key
	if m.KeyFile != "" {
		text, err := os.ReadFile(m.KeyFile)
		if err != nil {
			return nil, fmt.Errorf("--model-key-file: %w", err)
		}
		key = strings.TrimSpace(string(text))
	}
	// The client may only reach the model's endpoint.
	out, err := egress.New(egress.Config{Allow: m.Allow, Origins: n.config.Origins})
	if err != nil {
		return nil, err
	}
	n.closeLater(func() error { out.Close(); return nil })
	micros := func(eur float64) int64 { return int64(math.Round(eur * price.MicrosPerEUR)) }
	perThousand := func(eurPerMillion float64) int64 {
		return int64(math.Round(eurPerMillion * price.MicrosPerEUR / 1_000))
	}
	return fetcher.NewModel(fetcher.ModelConfig{BaseURL: m.URL, Model: m.Name,
		Key: fetcher.ModelKey(key), Timeout: m.Timeout,
		MaxAnswer: m.MaxAnswer, MaxPageTokens: m.PageTokens, MaxDayTokens: m.DayTokens,
		PriceIn:  perThousand(m.PriceIn),
		PriceOut: perThousand(m.PriceOut), MaxPageMicros: micros(m.PageCost),
		MaxDayMicros: micros(m.DayCost)},
		out, n.clock, n.metrics)
}
