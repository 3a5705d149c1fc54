package apiserver

import (
	"shoal.dev/shoal/apiserver/internal/contracts"
	"shoal.dev/shoal/pkg/work"
)

// ContractsConfig is what the ending of subscriptions works with.
type ContractsConfig = contracts.Config

// Contracts is the ending, at the payment provider, of what nobody is to pay for any more. It is a
// kind of background work.
func Contracts(config ContractsConfig) work.Kind { return contracts.Kind(config) }
