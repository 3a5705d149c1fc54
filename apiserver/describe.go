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
		said.Description = "The operations that agents may call, as tools of POST /mcp, named by their ids. " +
			"Every text that was scraped comes marked as data there. " + said.Description
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
		{Name: "File uploads", Description: "Scrapers whose rows are those of an uploaded file."},
		{Name: "Previews", Description: "What would be read from a page. They save nothing."},
		{Name: "Scraper jobs", Description: "What became of runs: history, errors, progress."},
		{Name: "Data", Description: "Scraped rows, by pages or as one file."},
		{Name: "Groups", Description: "Groups of scrapers, each with one collection of rows."},
		{Name: "Shared groups", Description: "Groups that others may read, by their addresses."},
		{Name: "Sitemaps", Description: "What the sitemaps of scrapers' sites name."},
		{Name: "Sites", Description: "Fixed lists of links that the runs of a scraper read."},
		{Name: "Schemas", Description: "Extraction schemas: the customer's own and global ones."},
		{Name: "Wallet", Description: "The prepaid wallet: balance, entries, prices, top-ups."},
		{Name: "Subscriptions", Description: "Legacy plans, subscriptions to them, and invoices."},
		{Name: "Customer", Description: "The customer's profile, preferences and agreement."},
		{Name: "API keys", Description: "Keys that programs call with."},
		{Name: "Notifications", Description: "What customers are told, and how they want to be."},
		{Name: "Webhooks", Description: "Where customers are told of events by signed requests."},
		{Name: "Events", Description: "One stream of what changes of all that is a customer's."},
		{Name: "Sign-in", Description: "Sessions of people, who have a password here."},
		{Name: "Passkeys", Description: "Sign-ins by a device's lock, without a password."},
		{Name: "Programs", Description: "Programs that people let call in their stead: OAuth 2.1."},
		{Name: "Administration", Description: "What operators ask of the service and tell it."},
		{Name: "Agents", Description: "The gateway of agents, which calls operations as tools."},
		{Name: "System", Description: "Questions to the server itself, by probes and tools."},
	}
}

// describe states what applies to all calls: the limits that a caller meets.
func describe() string {
	return fmt.Sprintf("Times: address and header lines have %v and %d bytes, bodies of up to 1 "+
		"MiB %v, else the call ends with "+
		"408 upload_too_slow or 431. %s A refused sender may send on for a while, up to %d MiB "+
		"in %v, so that it reads "+
		"its answer; then the connection ends.\n\nRates: each call names its class. "+
		"RateLimit-Limit, RateLimit-Remaining "+
		"and RateLimit-Reset tell of the limit that binds: the key's, or that of all keys of "+
		"the customer together, %d times "+
		"as much unless told otherwise. Calls without a valid credential count for their "+
		"address. 429 has Retry-After, in "+
		"seconds. An address has %d connections at most.", headerTimeout, maxHeader, bodyTimeout,
		operation.DescribeBodies(),
		lingerBytes>>20, lingerTime, limits.CustomerFactor, maxOfAddress)
}
