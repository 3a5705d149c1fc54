package apiserver

import (
	"shoal.dev/shoal/apiserver/internal/accounts"
	"shoal.dev/shoal/apiserver/internal/auth"
)

// openAccounts makes the service that signs people in here.
func openAccounts(config Config, issuer *auth.Issuer, m *metrics) (*accounts.Service, error) {
	key, err := issuer.Derive("devices that have signed in")
	if err != nil {
		return nil, err
	}
	return accounts.New(accounts.Config{HashKiB: config.HashKiB, Client: config.Client,
		Limiter: config.Limiter,
		Clock:   config.Clock, IDs: config.IDs, DeviceKey: key, Logger: config.Logger,
		Count: func(o accounts.Outcome) { m.signIns.WithLabelValues(string(o)).Inc() }})
}
