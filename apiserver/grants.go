package apiserver

import (
	"shoal.dev/shoal/apiserver/internal/auth"
	"shoal.dev/shoal/apiserver/internal/grants"
)

// openGrants makes the service through which people let programs call on their behalf.
func openGrants(config Config, issuer *auth.Issuer) (*grants.Service, error) {
	key, err := issuer.Derive("programs that people let in")
	if err != nil {
		return nil, err
	}
	return &grants.Service{Key: key, Client: config.Client, Clock: config.Clock,
		IDs: config.IDs}, nil
}
