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
	Rates          Rates          `name:"rate" group:"operation" mapsep:"," help:"How often a key may make calls of a class, and as many at once: run=20/1m. The class anonymous is of an address, for calls without a valid credential." placeholder:"CLASS=COUNT/PER"`
	TrustedProxies []netip.Prefix `group:"operation" help:"Ranges of proxies that stand before the API: their Forwarded or X-Forwarded-For say who calls, and they may have any number of connections. None by default: who connects calls." placeholder:"CIDR"`
	CustomerRates  Rates          `name:"customer-rate" group:"operation" mapsep:"," help:"How often all keys of a customer may together; by default ten times as often as a key." placeholder:"CLASS=COUNT/PER"`
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
