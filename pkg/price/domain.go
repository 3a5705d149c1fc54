package price

import (
	"strings"

	"shoal.dev/shoal/pkg/address"
	"shoal.dev/shoal/pkg/model"
)

// MaxDomains is the most domain rows in a list. A byte, which names the row of a unit, can hold
// more.
const MaxDomains = 100

const domainKeys = "domain:"

// maxName is the length of the longest host name.
const maxName = 253

// DomainKey returns the key of a registrable domain's row.
func DomainKey(domain string) string { return domainKeys + domain }

// DomainOf returns the domain of a row's key. Not ok: the key holds no name as in canonical
// addresses. It does not check whether the name can be registered: lists of public suffixes differ
// between nodes.
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

// Domains returns the enabled rows of domains, in order.
func (l List) Domains() (rows []Row) {
	for _, row := range l {
		if row.Kind == Domain && !row.Off {
			rows = append(rows, row)
		}
	}
	return rows
}

// KeyAt returns the key of the row at a place in List.Domains, from 1; "": there is none.
func KeyAt(domains []Row, place uint8) string {
	if place == 0 || int(place) > len(domains) {
		return ""
	}
	return domains[place-1].RowKey
}

// Places finds the row of a page's domain, as a place in List.Domains, from 1.
type Places map[string]uint8

// Places returns the list's Places; nil if it has no domain rows.
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

// Of returns the place of the row of an authority's registrable domain; 0: it has none.
func (p Places) Of(authority string) uint8 {
	if len(p) == 0 {
		return 0
	}
	return p[address.DomainOf(authority)]
}

// At returns how a page of an authority is charged under the list.
func (l List) At(charge model.Charge, authority string) model.PageCharge {
	domain := address.DomainOf(authority)
	for _, row := range l.Domains() {
		if row.RowKey == DomainKey(domain) {
			return charge.At(row.RowKey)
		}
	}
	return charge.At("")
}
