// Package stripe takes customers' money through Stripe Checkout. It makes hosted sessions in euros,
// and reads the events that Stripe signs. It keeps no state.
package stripe

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/stripe/stripe-go/v85"

	"shoal.dev/shoal/apiserver/payment"
	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/fault"
)

// Keys of a session's metadata that identify its events as ours.
const (
	customerMember = "shoal_customer"
	clusterMember  = "shoal_cluster"
)

// Paths to which a checkout returns, below Config.ReturnURL.
const (
	paidPath     = "/api/customer/subscription/success"
	canceledPath = "/api/customer/payment/canceled"
)

const (
	tryTime  = 15 * time.Second // of one attempt at a call
	retries  = 1                // of a failed call; an idempotency key makes them safe
	maxID    = 255              // bytes of Stripe's ids
	maxURL   = 4_096            // bytes of a checkout's address
	currency = stripe.CurrencyEUR
	product  = "Wallet top-up" // shown to customers in the checkout
)

// Config is our account at Stripe, and the address to which customers return. Key, Secret,
// ReturnURL and Clock must be set.
type Config struct {
	Key       string // an API key: sk_… or rk_…, the latter with write access to Checkout Sessions
	Secret    string // of the webhook endpoint: whsec_…
	ReturnURL string // where browsers find the API; no path
	URL       string // of Stripe's API, for tests; "": Stripe's own
	Clock     clock.Clock
}

// Check reports what is wrong with the configuration, without revealing a secret.
func (c *Config) Check() error {
	back, err := url.Parse(c.ReturnURL)
	switch {
	case !strings.HasPrefix(c.Key, "sk_") && !strings.HasPrefix(c.Key, "rk_"):
		return errors.New("the key is none of Stripe's secret or restricted ones: " +
			"want sk_… or rk_…")
	case !strings.HasPrefix(c.Secret, "whsec_"):
		return errors.New("the secret is none of a webhook endpoint: want whsec_…")
	case err != nil || !isWeb(back):
		return fmt.Errorf("%.200q: want https://HOST, or http:// on this machine",
			c.ReturnURL)
	case back.User != nil || strings.Trim(back.Path, "/") != "" || back.RawQuery != "" ||
		back.Fragment != "":
		return errors.New("the address to come back to has a host, and a port, and nothing else")
	}
	return nil
}

// isWeb reports whether browsers may be sent to an address: over TLS, or on this machine.
func isWeb(u *url.URL) bool {
	return u.Hostname() != "" && (u.Scheme == "https" ||
		u.Scheme == "http" && isHere(u.Hostname()))
}

func isHere(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

// Provider implements payment.Provider.
type Provider struct {
	secret string
	back   string
	clock  clock.Clock
	client *stripe.Client
	close  func()
}

// Close closes idle connections.
func (p *Provider) Close() { p.close() }

// New makes a provider. It makes no calls yet.
func New(c Config) (*Provider, error) {
	if err := c.Check(); err != nil {
		return nil, fmt.Errorf("stripe: %w", err)
	}
	transport := newTransport()
	backend := &stripe.BackendConfig{
		HTTPClient: &http.Client{Timeout: tryTime, Transport: transport,
			CheckRedirect: stay},
		LeveledLogger:     &stripe.LeveledLogger{Level: stripe.LevelNull},
		MaxNetworkRetries: stripe.Int64(retries),
		EnableTelemetry:   stripe.Bool(false),
	}
	if c.URL != "" {
		backend.URL = stripe.String(c.URL)
	}
	return &Provider{secret: c.Secret, back: strings.TrimRight(c.ReturnURL, "/"), clock: c.Clock,
		close: transport.CloseIdleConnections, client: stripe.NewClient(c.Key,
			stripe.WithBackends(stripe.NewBackendsWithConfig(backend)))}, nil
}

// Open implements payment.Provider. It keeps currency conversion, discounts and taxes off, so that
// the customer pays exactly the order's amount.
func (p *Provider) Open(ctx context.Context, order payment.Order) (payment.Session, error) {
	known := map[string]string{customerMember: order.Customer, clusterMember: order.Cluster}
	params := &stripe.CheckoutSessionCreateParams{
		Mode: stripe.String(string(stripe.CheckoutSessionModePayment)),
		LineItems: []*stripe.CheckoutSessionCreateLineItemParams{{
			Quantity: stripe.Int64(1),
			PriceData: &stripe.CheckoutSessionCreateLineItemPriceDataParams{
				Currency:   stripe.String(string(currency)),
				UnitAmount: stripe.Int64(order.Cents),
				ProductData: &stripe.CheckoutSessionCreateLineItemPriceDataProductDataParams{
					Name: stripe.String(product)},
			}}},
		SuccessURL: stripe.String(p.back + paidPath),
		CancelURL:  stripe.String(p.back + canceledPath),
		Metadata:   known,
		PaymentIntentData: &stripe.CheckoutSessionCreatePaymentIntentDataParams{
			Metadata: known},
		AdaptivePricing: &stripe.CheckoutSessionCreateAdaptivePricingParams{
			Enabled: stripe.Bool(false)},
	}
	params.SetIdempotencyKey(order.Key)
	made, err := p.client.V1CheckoutSessions.Create(ctx, params)
	if err != nil {
		return payment.Session{}, failed(err)
	}
	return readOpened(made)
}

// failed is the fault of a failed call. What Stripe answered is only for the log.
func failed(err error) error {
	said := err
	if refused := (*stripe.Error)(nil); errors.As(err, &refused) {
		said = fmt.Errorf("stripe: status %d, %s, %s: %.200s (request %s)",
			refused.HTTPStatusCode, refused.Type, refused.Code, refused.Msg, refused.RequestID)
	}
	return fault.Wrap(fault.ProviderFailed, said,
		"the payment provider cannot be asked at the moment; try again")
}
