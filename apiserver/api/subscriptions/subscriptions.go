// Package subscriptions owns the operations on legacy plans (specification 4.11): what there is to
// choose. What plans gate is declared by the operations that they gate.
package subscriptions

import (
	"shoal.dev/shoal/apiserver/internal/operation"
	"shoal.dev/shoal/apiserver/internal/plans"
	"shoal.dev/shoal/controlplane/client"
)

const group = "Subscriptions"

// Resource is the operations on subscriptions, and what they use.
type Resource struct {
	Plans *plans.Catalogue
}

// Status is a subscription's status: ACTIVE or INACTIVE.
func Status(s *client.Subscription) string {
	if s.Active() {
		return "ACTIVE"
	}
	return "INACTIVE"
}

// Operations are all of the resource, in the order of the specification.
func (r Resource) Operations() []*operation.Operation {
	return []*operation.Operation{
		r.planFeatures(),
		r.prices(),
	}
}
