package service

import (
	"errors"
	"fmt"

	"shoal.dev/shoal/apiserver/payment"
	"shoal.dev/shoal/apiserver/payment/stripe"
	"shoal.dev/shoal/pkg/clock"
)

// StripeFlags configure customers' payments, for API servers only. All are given, or none.
type StripeFlags struct {
	KeyFile    string `group:"payments" help:"File with an API key of the Stripe account for top-ups. Without it there are no top-ups, only 'shoal wallet adjust'." type:"path" placeholder:"FILE"`
	SecretFile string `group:"payments" help:"File with the signing secret of the account's webhook endpoint, /api/subscription/webhook of this API." type:"path" placeholder:"FILE"`
	ReturnURL  string `group:"payments" help:"Address of this API for customers' browsers. A checkout returns there." placeholder:"https://HOST"`
	URL        string `hidden:"" help:"Address of Stripe's API. For tests." placeholder:"URL"`
}

func (f *StripeFlags) check() error {
	_, err := f.open(nil)
	return err
}

// open makes the provider, nil if none is configured.
func (f *StripeFlags) open(by clock.Clock) (*stripe.Provider, error) {
	given := 0
	for _, flag := range []string{f.KeyFile, f.SecretFile, f.ReturnURL} {
		if flag != "" {
			given++
		}
	}
	switch given {
	case 0:
		return nil, nil
	case 3:
	default:
		return nil, errors.New("--stripe-key-file, --stripe-secret-file and --stripe-return-url " +
			"go together")
	}
	key, keyError := secret("--stripe-key", "", f.KeyFile)
	signing, secretError := secret("--stripe-secret", "", f.SecretFile)
	if err := errors.Join(keyError, secretError); err != nil {
		return nil, err
	}
	provider, err := stripe.New(stripe.Config{Key: key, Secret: signing, ReturnURL: f.ReturnURL,
		URL: f.URL, Clock: by})
	if err != nil {
		return nil, fmt.Errorf("--stripe-key-file, --stripe-secret-file, --stripe-return-url: %w",
			err)
	}
	return provider, nil
}

// openPayments makes the payment provider, nil if there is none.
func (n *node) openPayments() (payment.Provider, error) {
	provider, err := n.config.Stripe.open(n.clock)
	if provider == nil {
		return nil, err
	}
	n.closeLater(func() error { provider.Close(); return nil })
	return provider, nil
}
