package service

import (
	"fmt"

	"shoal.dev/shoal/pkg/address"
	"shoal.dev/shoal/pkg/extract"
	"shoal.dev/shoal/pkg/model"
)

// authorityOf is the host and port that politeness counts by. A listed address was checked at
// intake; one that cannot be read all the same has the empty host.
func authorityOf(url string) string {
	canonical, err := address.Canonical(url)
	if err != nil {
		return ""
	}
	return address.AuthorityOf(canonical)
}

// shardBy is the shard of an authority among so many.
func shardBy(shards int) func(string) int {
	return func(authority string) int { return address.Shard(authority, shards) }
}

// readDomain names the domain that a website's reads count for, and nothing for addresses that are
// answered unread.
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
