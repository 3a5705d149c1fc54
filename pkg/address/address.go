// Package address defines what an address means: its canonical form, the target of a link on a
// page, its host and its registrable domain. It also determines the shard that fetches it.
// Everything that distinguishes addresses, hosts or domains uses this package, so that all agree.
// It asks no resolver and opens nothing: pkg/egress decides which addresses may be reached.
package address

import (
	"net/netip"
	"strings"

	whatwg "github.com/nlnwa/whatwg-url/url"
	"github.com/zeebo/xxh3"
	"golang.org/x/net/publicsuffix"

	"shoal.dev/shoal/pkg/fault"
)

// Longest is the most bytes of an address.
const Longest = 8192

// Address is a parsed http or https address. Its strings are parts of the canonical one.
type Address struct {
	Canonical string
	TLS       bool
	Host      string // lower case, IPv6 in brackets
	Port      string // empty for the scheme's default
	Authority string // host, and the port unless it is the scheme's default
	Target    string // path and query
	Userinfo  bool   // it had a user name or password, which the canonical form omits
	// Named says that the host is not an IP address and has only ASCII letters, digits, dots and
	// hyphens.
	Named bool
}

// Canonical returns the form of an address that identifies its page, as parsed by a browser
// (WHATWG). Its host is in lower case, and it has no fragment, user name, password or default port.
// The query keeps its order. Its results stay unchanged. Its error has the code INVALID_URL.
func Canonical(url string) (string, error) {
	to, err := Parse(url)
	return to.Canonical, err
}

// Resolve returns the canonical address of a link on a page at base. Errors: INVALID_URL.
func Resolve(base, ref string) (string, error) {
	if len(ref) > Longest {
		return "", tooLong()
	}
	to, err := Parse(ref)
	if err == nil && to.Named {
		return to.Canonical, nil
	}
	url, err := whatwg.ParseRef(base, ref)
	if err != nil {
		return "", fault.Wrap(fault.InvalidURL, err, "The link cannot be read.")
	}
	to, err = fromParsed(url)
	return to.Canonical, err
}

// HostOf returns the host of a canonical address, without port and brackets.
func HostOf(canonical string) string {
	_, rest, _ := strings.Cut(canonical, "://")
	if end := strings.IndexAny(rest, "/?#"); end >= 0 {
		rest = rest[:end]
	}
	if strings.HasPrefix(rest, "[") {
		host, _, _ := strings.Cut(rest[1:], "]")
		return host
	}
	host, _, _ := strings.Cut(rest, ":")
	return host
}

// AuthorityOf returns the host of a canonical address, with the port unless it is the scheme's
// default. Politeness counts per authority.
func AuthorityOf(canonical string) string {
	_, rest, _ := strings.Cut(canonical, "://")
	if end := strings.IndexAny(rest, "/?#"); end >= 0 {
		rest = rest[:end]
	}
	return rest
}

// Shard returns the shard of an authority, from 0 to shards-1. All hosts of a registrable domain
// share a shard. Nodes that disagreed would crawl one site twice as fast, so this never changes.
func Shard(authority string, shards int) int {
	return int(xxh3.HashString(DomainOf(authority)) % uint64(shards))
}

// DomainOf returns the registrable domain of an authority.
func DomainOf(authority string) string {
	host := authority
	if at := strings.LastIndexByte(authority, ':'); at > strings.LastIndexByte(authority, ']') {
		host = authority[:at]
	}
	return RegistrableDomain(strings.Trim(host, "[]"))
}

// Domain returns a number for the registrable domain of a canonical address, never 0.
func Domain(canonical string) uint64 {
	return max(xxh3.HashString(RegistrableDomain(HostOf(canonical))), 1)
}

// RegistrableDomain returns the domain under which a host was registered: one label below a public
// suffix. IP addresses and hosts without such a domain (public suffixes, single labels) are
// returned unchanged.
func RegistrableDomain(host string) string {
	if domain, ok := registered(host); ok {
		return domain
	}
	return host
}

// IsRegistrable reports whether a name in lower case is a domain that can be registered. Hosts
// below one are not, nor are IP addresses, public suffixes and single labels.
func IsRegistrable(name string) bool {
	domain, ok := registered(name)
	return ok && domain == name
}

// registered returns the domain under which a host was registered. ok is false if there is none.
func registered(host string) (domain string, ok bool) {
	if last := len(host) - 1; last >= 0 &&
		(host[last] <= '9' || strings.IndexByte(host, ':') >= 0) {
		if _, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil {
			return "", false
		}
	}
	domain, err := publicsuffix.EffectiveTLDPlusOne(strings.TrimSuffix(host, "."))
	return domain, err == nil
}

// Parse parses an address like a browser (WHATWG). Its error has the code INVALID_URL.
func Parse(url string) (Address, error) {
	if len(url) > Longest {
		return Address{}, tooLong()
	}
	if to, ok := scan(url); ok {
		return to, nil
	}
	return parseSlowly(url)
}

func tooLong() error {
	return fault.New(fault.InvalidURL, "The address is longer than %d bytes.", Longest)
}

// parseSlowly implements the whole standard; scan agrees with it wherever scan succeeds.
func parseSlowly(url string) (Address, error) {
	parsed, err := whatwg.Parse(url)
	if err != nil {
		return Address{}, fault.Wrap(fault.InvalidURL, err, "The address cannot be read.")
	}
	return fromParsed(parsed)
}

func fromParsed(url *whatwg.Url) (Address, error) {
	if scheme := url.Scheme(); scheme != "http" && scheme != "https" {
		return Address{}, fault.New(fault.InvalidURL, "The address is neither http nor https.")
	}
	to := Address{TLS: url.Scheme() == "https", Host: url.Hostname(), Port: url.Port(),
		Authority: url.Host()}
	if to.Host == "" {
		return Address{}, fault.New(fault.InvalidURL, "The address names no host.")
	}
	to.Userinfo = url.Username() != "" || url.Password() != ""
	url.SetUsername("")
	url.SetPassword("")
	to.Canonical = url.Href(true)
	if len(to.Canonical) > Longest {
		return Address{}, tooLong()
	}
	for i := range len(to.Canonical) {
		if c := to.Canonical[i]; c <= ' ' || c >= 0x7f {
			return Address{}, fault.New(fault.InvalidURL, "The address cannot be read.")
		}
	}
	_, rest, _ := strings.Cut(to.Canonical, "://")
	to.Target = strings.TrimPrefix(rest, to.Authority)
	return to, nil
}

// Classes of bytes that the standard leaves unchanged.
const (
	inHost = 1 << iota
	inPath
	inQuery
)

var classes = func() (table [256]uint8) {
	const lower, other = "abcdefghijklmnopqrstuvwxyz0123456789-.",
		"ABCDEFGHIJKLMNOPQRSTUVWXYZ_~!$&()*+,;=:@/%"
	for _, c := range lower {
		table[c] = inHost | inPath | inQuery
	}
	for _, c := range other {
		table[c] = inPath | inQuery
	}
	table['\''] = inPath
	for _, c := range "?[]|" {
		table[c] = inQuery
	}
	return table
}()

// scan parses a common address, which is already canonical except for a fragment or a missing path.
// It returns false for anything unusual, which the standard's own parser then decides.
func scan(url string) (Address, bool) {
	to := Address{Named: true}
	start := len("http://")
	if !strings.HasPrefix(url, "http://") {
		if !strings.HasPrefix(url, "https://") {
			return to, false
		}
		to.TLS, start = true, len("https://")
	}
	end := start
	for end < len(url) && classes[url[end]]&inHost != 0 {
		end++
	}
	to.Host = url[start:end]
	if !plainHost(to.Host) {
		if addr, err := netip.ParseAddr(to.Host); err != nil || !addr.Is4() {
			return to, false
		}
		to.Named = false
	}
	if end < len(url) && url[end] == ':' {
		digits := end + 1
		for end++; end < len(url) && url[end]-'0' <= 9; end++ {
		}
		to.Port = url[digits:end]
		if !plainPort(to.Port, to.TLS) {
			return to, false
		}
	}
	to.Authority = url[start:end]
	if end == len(url) {
		to.Canonical, to.Target = url+"/", "/"
		return to, true
	}
	stop, ok := scanTarget(url, end)
	if ok {
		to.Canonical, to.Target = url[:stop], url[end:stop]
	}
	return to, ok
}

// scanTarget scans path, query and fragment from start on. It returns the end of path and query.
func scanTarget(url string, start int) (int, bool) {
	if url[start] != '/' {
		return 0, false
	}
	i := start
	for ; i < len(url) && classes[url[i]]&inPath != 0; i++ {
		// A dot segment, even percent-encoded, changes the path.
		if url[i] == '.' && url[i-1] == '/' {
			return 0, false
		}
		if url[i] == '%' && i+2 < len(url) && url[i+1] == '2' && url[i+2]|0x20 == 'e' {
			return 0, false
		}
	}
	if i < len(url) && url[i] == '?' {
		for ; i < len(url) && classes[url[i]]&inQuery != 0; i++ {
		}
	}
	if i == len(url) {
		return i, true
	}
	if url[i] != '#' {
		return 0, false
	}
	for rest := i + 1; rest < len(url); rest++ {
		if classes[url[rest]]&inQuery == 0 {
			return 0, false
		}
	}
	return i, true
}

// plainHost reports whether a host of lower-case letters, digits, dots and hyphens is left
// unchanged by the standard. It has no punycode to check, nothing that could be a number, and no
// misplaced hyphens or dots.
func plainHost(host string) bool {
	if len(host) == 0 || len(host) > 253 {
		return false
	}
	label := 0
	for i := 0; i <= len(host); i++ {
		if i < len(host) && host[i] != '.' {
			continue
		}
		size := i - label
		if size == 0 || size > 63 || host[label] == '-' || host[i-1] == '-' {
			return false
		}
		if size >= 4 && host[label+2] == '-' && host[label+3] == '-' {
			return false
		}
		if i == len(host) {
			return host[label] > '9'
		}
		label = i + 1
	}
	return false
}

// plainPort reports whether digits are a port as the standard writes it.
func plainPort(digits string, tls bool) bool {
	if len(digits) == 0 || len(digits) > 5 || digits[0] == '0' || len(digits) == 5 &&
		digits > "65535" {
		return false
	}
	return digits != "80" && !tls || digits != "443" && tls
}
