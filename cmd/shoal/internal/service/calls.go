package service

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"github.com/alecthomas/kong"

	"shoal.dev/shoal/apiserver"
	"shoal.dev/shoal/pkg/cache"
)

// CallFlags say how often callers may use the API.
type CallFlags struct {
	Rates          Rates          `name:"rate" group:"operation" mapsep:"," help:"Rate limit of an API key for a class of calls, such as run=20/1m. The count is also the burst. The class anonymous limits calls without a valid credential, by IP address." placeholder:"CLASS=COUNT/PER"`
	TrustedProxies []netip.Prefix `group:"operation" help:"Address ranges of proxies in front of the API. Their Forwarded or X-Forwarded-For header names the caller, and their connections are not limited. None by default: the connecting address is the caller." placeholder:"CIDR"`
	CustomerRates  Rates          `name:"customer-rate" group:"operation" mapsep:"," help:"Rate limit of all keys of a customer together; by default ten times that of one key." placeholder:"CLASS=COUNT/PER"`
}

// Rates are figures by class: CLASS=COUNT/PER,…
type Rates map[string]apiserver.Rate

// Decode implements kong.MapperValue.
func (r *Rates) Decode(ctx *kong.DecodeContext) error {
	var text string
	if err := ctx.Scan.PopValueInto("rates", &text); err != nil {
		return err
	}
	for _, part := range strings.Split(text, ",") {
		class, figure, found := strings.Cut(strings.TrimSpace(part), "=")
		if !found {
			return fmt.Errorf("%.50q: want CLASS=COUNT/PER", part)
		}
		rate, err := cache.ParseLimit(figure)
		if err != nil {
			return fmt.Errorf("%.50s: %w", class, err)
		}
		if *r == nil {
			*r = Rates{}
		}
		(*r)[class] = rate
	}
	return nil
}

// check refuses figures for unknown classes.
func (c *CallFlags) check(unlimited bool) error {
	if unlimited && len(c.Rates)+len(c.CustomerRates) > 0 {
		return errors.New("--rate, --customer-rate: nothing is limited with --no-rate-limits")
	}
	if err := apiserver.CheckRates(c.Rates); err != nil {
		return fmt.Errorf("--rate: %w", err)
	}
	if err := apiserver.CheckCustomerRates(c.CustomerRates); err != nil {
		return fmt.Errorf("--customer-rate: %w", err)
	}
	return nil
}
