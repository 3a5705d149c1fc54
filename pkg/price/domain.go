package price

import (
	"strings"

	"shoal.dev/shoal/pkg/address"
	"shoal.dev/shoal/pkg/model"
)

// MaxDomains is how many rows of domains a list has at most. It is less than a byte holds, which is
// what names the row of a unit.
const MaxDomains = 100

const domainKeys = "domain:"

// maxName is the length of the longest host name.
const maxName = 253

// DomainKey is the key of a registrable domain's row.
func DomainKey(domain string) string { return domainKeys + domain }

// DomainOf is the domain of a row's key. Not ok: the key is not one of a name as canonical
// addresses have it. Whether the name can be registered, a list of public suffixes says, which is
// not the same on all nodes.
func DomainOf(key string) (domain string, ok bool) {
	domain, ok = strings.CutPrefix(key, domainKeys)
	if !ok || domain == "" || len(domain) > maxName {
		return "", false
	}
	for _, c := range []byte(domain) {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' && c != '.' {
			return "", false
		}
	}
	return domain, true
}

// Domains are the rows of domains that are on, in their order.
func (l List) Domains() (rows []Row) {
	for _, row := range l {
		if row.Kind == Domain && !row.Off {
			rows = append(rows, row)
		}
	}
	return rows
}

// KeyAt is the key of the row at a place among List.Domains, from 1; "": there is none.
func KeyAt(domains []Row, place uint8) string {
	if place == 0 || int(place) > len(domains) {
		return ""
	}
	return domains[place-1].RowKey
}

// Places finds the row of a page's domain. What it answers is a place among List.Domains, from 1.
type Places map[string]uint8

// Places are those of the list; nil where it has no row of a domain.
func (l List) Places() Places {
	rows := l.Domains()
	if len(rows) == 0 {
		return nil
	}
	places := Places{}
	for i, row := range rows[:min(MaxDomains, len(rows))] {
		if domain, ok := DomainOf(row.RowKey); ok {
			places[domain] = uint8(i + 1)
		}
	}
	return places
}

// Of is the place of the row of an authority's registrable domain; 0: it has none.
func (p Places) Of(authority string) uint8 {
	if len(p) == 0 {
		return 0
	}
	return p[address.DomainOf(authority)]
}

// At is how a page of an authority is charged under the list.
func (l List) At(charge model.Charge, authority string) model.PageCharge {
	domain := address.DomainOf(authority)
	for _, row := range l.Domains() {
		if row.RowKey == DomainKey(domain) {
			return charge.At(row.RowKey)
		}
	}
	return charge.At("")
}
