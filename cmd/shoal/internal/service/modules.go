package service

import (
	"context"
	"slices"

	"shoal.dev/shoal/controlplane/identity"
	"shoal.dev/shoal/pkg/lifecycle"
)

// module is a part that a process can contain: a role, or something that roles depend on.
type module struct {
	name  string
	needs []string // modules that come before it in the table
	// build makes it without running anything. Nil: there is nothing to make.
	build func(n *node, ctx context.Context) error
	part  func(n *node) lifecycle.Part // what runs of it; nil: nothing
}

// Modules that are not roles.
const (
	opsModule     = "ops"    // operators' endpoints
	logModule     = "log"    // the three topics
	rowsModule    = "rows"   // the row store
	cacheModule   = "cache"  // data that may be lost
	blobsModule   = "blobs"  // the blob store
	egressModule  = "egress" // the way out
	readingModule = "reading"
	webModule     = "web"   // how the fetcher gets pages
	ratesModule   = "rates" // exchange rates
	stateModule   = "state" // the control plane's state: a voter in that role, otherwise a copy
	workModule    = "work"  // background work of all its roles
	readyModule   = "ready" // reports that all modules before it have started
)

// modules lists all modules in the order in which they are built and started. They stop in reverse
// order, the way of a page round the loop. So fetched pages do not have to be fetched again.
func modules() []module {
	return []module{
		{name: opsModule, part: (*node).opsPart},
		{name: logModule, build: (*node).openLog},
		{name: rowsModule, build: (*node).openRows},
		{name: cacheModule, build: (*node).openCache},
		{name: blobsModule, build: (*node).openBlobs},
		{name: egressModule, build: (*node).openEgress},
		{name: readingModule, build: (*node).buildReader},
		{name: webModule, needs: []string{cacheModule, egressModule, readingModule},
			build: (*node).buildWeb},
		{name: ratesModule, needs: []string{cacheModule, egressModule}, build: (*node).buildRates},
		{name: stateModule, build: (*node).buildState, part: (*node).statePart},
		{name: workModule, needs: []string{stateModule}, build: (*node).buildWork,
			part: (*node).workPart},
		{name: identity.ControlPlane,
			needs: []string{logModule, rowsModule, blobsModule, stateModule, workModule},
			build: (*node).buildControlPlane},
		{name: identity.Billing,
			needs: []string{logModule, rowsModule, readingModule, stateModule, workModule},
			build: (*node).buildBilling, part: (*node).billingPart},
		{name: identity.Ingest,
			needs: []string{logModule, rowsModule, blobsModule, readingModule, stateModule,
				workModule},
			build: (*node).buildIngest, part: (*node).ingestPart},
		{name: identity.Fetcher,
			needs: []string{logModule, blobsModule, readingModule, webModule, ratesModule,
				stateModule},
			build: (*node).buildFetcher, part: (*node).fetcherPart},
		{name: identity.APIServer,
			needs: []string{logModule, rowsModule, cacheModule, blobsModule, egressModule,
				readingModule, ratesModule, stateModule, workModule},
			build: (*node).buildAPI, part: (*node).apiPart},
		{name: readyModule, part: (*node).readyPart},
	}
}

// needed returns the given modules and their dependencies, in the order of the table.
func needed(asked ...string) []module {
	wanted := map[string]bool{}
	for _, name := range asked {
		wanted[name] = true
	}
	var found []module
	for _, m := range slices.Backward(modules()) {
		if !wanted[m.name] {
			continue
		}
		found = append(found, m)
		for _, name := range m.needs {
			wanted[name] = true
		}
	}
	slices.Reverse(found)
	return found
}

// asked returns the modules that this process needs directly.
func (n *node) asked() []string {
	asked := slices.Clone(n.config.Roles)
	if n.identity == nil { // a standalone process leads in any case
		asked = append(asked, identity.ControlPlane)
	}
	if n.ops != nil {
		asked = append(asked, opsModule)
	}
	if !n.has(identity.APIServer) { // the API server reports it itself, with its address
		asked = append(asked, readyModule)
	}
	return asked
}

// build makes the needed modules without running them. It returns the parts to run, in order. What
// was made before an error is closed with the node.
func (n *node) build(ctx context.Context) (parts []lifecycle.Part, err error) {
	n.about().Declare(n.metrics)
	for _, m := range needed(n.asked()...) {
		if m.build != nil {
			if err := m.build(n, ctx); err != nil {
				return nil, err
			}
		}
		if m.part != nil {
			parts = append(parts, m.part(n))
		}
	}
	return parts, nil
}
