package service

import (
	"fmt"

	"shoal.dev/shoal/pkg/address"
	"shoal.dev/shoal/pkg/extract"
	"shoal.dev/shoal/pkg/model"
)

// authorityOf is the host and port that politeness counts by. A listed address was checked at
// intake; if it still cannot be parsed, the host is empty.
func authorityOf(url string) string {
	canonical, err := address.Canonical(url)
	if err != nil {
		return ""
	}
	return address.AuthorityOf(canonical)
}

// shardBy maps an authority to one of that many shards.
func shardBy(shards int) func(string) int {
	return func(authority string) int { return address.Shard(authority, shards) }
}

// readDomain returns the domain for which a website's reads count, and nothing for addresses that
// are answered without a read.
func readDomain() (func(url string) uint64, error) {
	contacts, err := extract.Compile(model.Recipe{Endpoint: model.WebsiteContacts})
	if err != nil {
		return nil, fmt.Errorf("website contacts: %w", err)
	}
	return func(url string) uint64 {
		if _, unread, err := contacts.Unfetched(extract.Page{URL: url, Asked: url}); unread ||
			err != nil {
			return 0
		}
		canonical, err := address.Canonical(url)
		if err != nil {
			return 0
		}
		return address.Domain(canonical)
	}, nil
}
