package apiserver

import (
	"fmt"
	"slices"

	"shoal.dev/shoal/apiserver/internal/limits"
	"shoal.dev/shoal/apiserver/internal/operation"
)

// document is the OpenAPI document that describes ops.
func document(ops []*operation.Operation, of ...func(*operation.About)) ([]byte, error) {
	said := about()
	for _, add := range of {
		add(&said)
	}
	return operation.OpenAPI(said, ops)
}

// agentDocument describes only the operations that agents may call.
func agentDocument(ops []*operation.Operation, of ...func(*operation.About)) ([]byte, error) {
	tools := slices.DeleteFunc(slices.Clone(ops),
		func(op *operation.Operation) bool { return op.Agents == "" })
	return document(tools, append(of, func(said *operation.About) {
		said.Part = true
		said.Title += " for agents"
		said.Description = "The operations that agents may call as tools of POST /mcp, named " +
			"by their ids. There, every scraped text is marked as data. " + said.Description
	})...)
}

// ceilings adds this server's upper limits to the description.
func (s *Server) ceilings(said *operation.About) {
	said.Most = map[string]float64{
		"PolitenessInput.requestsPerSecond": s.config.MaxHostRate,
		"PolitenessInput.connections":       float64(s.config.MaxHostConnections),
	}
}

// about is everything in the description but its operations.
func about() operation.About {
	return operation.About{Title: "Shoal", Version: "1.0", Description: describe(), Tags: tags(),
		Examples: examples(), Conditions: conditions()}
}

// tags are the groups of operations, in the order of the catalogue.
func tags() []operation.Tag {
	return []operation.Tag{
		{Name: "Scrapers", Description: "Saved scrapers: what is read from which pages, and how."},
		{Name: "Runs", Description: "Runs of scrapers and of lists of addresses, and samples."},
		{Name: "File uploads", Description: "Scrapers whose rows come from an uploaded file."},
		{Name: "Previews", Description: "Previews of what a page would give. They save nothing."},
		{Name: "Scraper jobs", Description: "The runs' history, errors and progress."},
		{Name: "Data", Description: "Scraped rows, page by page or as one file."},
		{Name: "Groups", Description: "Groups of scrapers, each with one collection of rows."},
		{Name: "Shared groups", Description: "Groups shared for reading, by e-mail address."},
		{Name: "Sitemaps", Description: "Addresses in the sitemaps of scrapers' sites."},
		{Name: "Sites", Description: "Fixed lists of links that the runs of a scraper read."},
		{Name: "Schemas", Description: "Extraction schemas: the customer's own and global ones."},
		{Name: "Wallet", Description: "The prepaid wallet: balance, entries, prices, top-ups."},
		{Name: "Subscriptions", Description: "Legacy plans, subscriptions to them, and invoices."},
		{Name: "Customer", Description: "The customer's profile, preferences and agreement."},
		{Name: "API keys", Description: "Keys with which programs call the API."},
		{Name: "Notifications", Description: "Notifications and their preferences."},
		{Name: "Webhooks", Description: "Addresses to which events are sent as signed requests."},
		{Name: "Events", Description: "One stream of changes to runs, wallet, top-ups and notifications."},
		{Name: "Sign-in", Description: "Sessions of people who have a password here."},
		{Name: "Passkeys", Description: "Sign-ins with a device's lock, without a password."},
		{Name: "Programs", Description: "Programs that call on a person's behalf: OAuth 2.1."},
		{Name: "Administration", Description: "Operations for the operators of the service."},
		{Name: "Agents", Description: "The agent gateway, which offers operations as tools."},
		{Name: "System", Description: "The server itself, for probes and tools."},
	}
}

// describe states what applies to all calls: the limits that a caller meets.
func describe() string {
	return fmt.Sprintf("Times: the request line and headers have %v and %d bytes, bodies of up "+
		"to 1 MiB have %v. Otherwise the call ends with 408 upload_too_slow or 431. %s A refused "+
		"sender may go on sending, up to %d MiB in %v, so that it reads its answer; then the "+
		"connection ends.\n\nRates: each operation names its rate class. RateLimit-Limit, "+
		"RateLimit-Remaining and RateLimit-Reset describe the limit that binds. That is the "+
		"key's, or that of all the customer's keys together, by default %d times as much. Calls "+
		"without a valid credential count for their address. 429 has Retry-After, in seconds. "+
		"An address has at most %d connections.", headerTimeout, maxHeader, bodyTimeout,
		operation.DescribeBodies(), lingerBytes>>20, lingerTime, limits.CustomerFactor,
		maxOfAddress)
}
