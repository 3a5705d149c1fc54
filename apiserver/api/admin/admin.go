// Package admin owns the operations that only operators may call (decision 32).
package admin

import (
	"context"
	"iter"

	"shoal.dev/shoal/apiserver/internal/launch"
	"shoal.dev/shoal/apiserver/internal/operation"
	"shoal.dev/shoal/apiserver/internal/plans"
	"shoal.dev/shoal/apiserver/payment"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/rowstore"
)

const group = "Administration"

// Resource has the operators' operations and their dependencies.
type Resource struct {
	Client   Client
	Launcher *launch.Launcher
	Plans    *plans.Source
	Clock    clock.Clock
	IDs      ids.Source
	// Store and History show what a customer has.
	Store   rowstore.Reads
	History *client.History
	// Operator carries out administrators' actions on the cluster.
	Operator client.Operator
	// Lag returns how many records each topic holds, by topic name.
	Lag func(ctx context.Context) map[string]int64
	// Accounts reports movements at the payment provider; nil: there is none.
	Accounts payment.Accounts
	// Recount compares the ledger entry of every closed run in a view with its page records.
	Recount func(ctx context.Context, view *client.View) iter.Seq2[RecountedRun, error]
}

// Client is the part of the control plane that operators use.
type Client interface {
	client.Proposer
	client.Reader
	Status(ctx context.Context) (client.Status, error)
	Nodes(ctx context.Context) ([]client.NodeStatus, error)
}

// Operations lists all operations, in the order of the specification.
func (r Resource) Operations() []*operation.Operation {
	return []*operation.Operation{
		r.settings(),
		r.putSettings(),
		r.prices(),
		r.putPrices(),
		r.customers(),
		r.customer(),
		r.blockCustomer(),
		r.limitUploads(),
		r.unblockCustomer(),
		r.previewRemoveCustomer(),
		r.removeCustomer(),
		r.adjustWallet(),
		r.requeue(),
		r.feedback(),
		r.salesFunnel(),
		r.audit(),
		r.status(),
		r.recount(),
		r.reconcile(),
		r.nodes(),
		r.work(),
		r.drain(),
		r.undrain(),
		r.removeNode(),
		r.backup(),
		r.backupRows(),
		r.restore(),
		r.backups(),
		r.restoreKept(),
	}
}
