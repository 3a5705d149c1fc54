package egress

import (
	"errors"
	"net/netip"
	"strings"

	whatwg "github.com/nlnwa/whatwg-url/url"
	"golang.org/x/net/publicsuffix"

	"shoal.dev/shoal/pkg/fault"
)

// MaxURL is the longest address in bytes.
const MaxURL = 8192

// address is a parsed http or https URL. Its strings are parts of the canonical URL.
type address struct {
	canonical string
	tls       bool
	host      string // lower case, IPv6 in brackets
	port      string // empty for the scheme's own
	authority string // host, and port where it is not the scheme's own
	target    string // path and query
	userinfo  bool   // the URL had a user name or password, which the canonical one has not
	plain     bool   // the host is no IP address and has only ASCII letters, digits, dots and hyphens
}

// Canonical is the address by which pages are told apart: as a browser reads it (WHATWG), lower-case host, no fragment,
// user name, password or default port, query in its order. It is what Canonical itself leaves unchanged. Its error has
// the code INVALID_URL.
func Canonical(url string) (string, error) {
	to, err := parse(url)
	return to.canonical, err
}

// Resolve is the canonical address of a link on a page at base. Its error has the code INVALID_URL.
func Resolve(base, ref string) (string, error) {
	if len(ref) > MaxURL {
		return "", tooLong()
	}
	to, err := parse(ref)
	if err == nil && to.plain {
		return to.canonical, nil
	}
	url, err := whatwg.ParseRef(base, ref)
	if err != nil {
		return "", fault.Wrap(fault.InvalidURL, err, "The link cannot be read.")
	}
	to, err = fromParsed(url)
	return to.canonical, err
}

// Host is the host of a canonical address, without port and brackets.
func Host(canonical string) string {
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

// RegistrableDomain is the domain under which a host was registered: the part below a public suffix. IP addresses and
// hosts that have no such part (public suffixes themselves, single labels) stay as they are.
func RegistrableDomain(host string) string {
	if last := len(host) - 1; last >= 0 && (host[last] <= '9' || strings.IndexByte(host, ':') >= 0) {
		if _, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil {
			return host
		}
	}
	domain, err := publicsuffix.EffectiveTLDPlusOne(strings.TrimSuffix(host, "."))
	if err != nil {
		return host
	}
	return domain
}

func parse(url string) (address, error) {
	if len(url) > MaxURL {
		return address{}, tooLong()
	}
	if to, ok := scan(url); ok {
		return to, nil
	}
	return parseSlowly(url)
}

func tooLong() error {
	return fault.New(fault.InvalidURL, "The address is longer than %d bytes.", MaxURL)
}

// parseSlowly is the whole standard; scan answers the same for what it takes.
func parseSlowly(url string) (address, error) {
	parsed, err := whatwg.Parse(url)
	if err != nil {
		return address{}, fault.Wrap(fault.InvalidURL, err, "The address cannot be read.")
	}
	return fromParsed(parsed)
}

func fromParsed(url *whatwg.Url) (address, error) {
	if scheme := url.Scheme(); scheme != "http" && scheme != "https" {
		return address{}, fault.New(fault.InvalidURL, "The address is neither http nor https.")
	}
	to := address{tls: url.Scheme() == "https", host: url.Hostname(), port: url.Port(), authority: url.Host()}
	if to.host == "" {
		return address{}, fault.New(fault.InvalidURL, "The address names no host.")
	}
	to.userinfo = url.Username() != "" || url.Password() != ""
	url.SetUsername("")
	url.SetPassword("")
	to.canonical = url.Href(true)
	if len(to.canonical) > MaxURL {
		return address{}, tooLong()
	}
	for i := range len(to.canonical) {
		if c := to.canonical[i]; c <= ' ' || c >= 0x7f {
			return address{}, fault.New(fault.InvalidURL, "The address cannot be read.")
		}
	}
	_, rest, _ := strings.Cut(to.canonical, "://")
	to.target = strings.TrimPrefix(rest, to.authority)
	return to, nil
}

// Classes of bytes that the standard leaves as they are.
const (
	inHost = 1 << iota
	inPath
	inQuery
)

var classes = func() (table [256]uint8) {
	const lower, other = "abcdefghijklmnopqrstuvwxyz0123456789-.", "ABCDEFGHIJKLMNOPQRSTUVWXYZ_~!$&()*+,;=:@/%"
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

// scan reads the common address, which is canonical already but for a fragment or a missing path. It answers false
// for anything unusual, which the standard's own parser then decides.
func scan(url string) (address, bool) {
	to := address{plain: true}
	start := len("http://")
	if !strings.HasPrefix(url, "http://") {
		if !strings.HasPrefix(url, "https://") {
			return to, false
		}
		to.tls, start = true, len("https://")
	}
	end := start
	for end < len(url) && classes[url[end]]&inHost != 0 {
		end++
	}
	to.host = url[start:end]
	if !plainHost(to.host) {
		if addr, err := netip.ParseAddr(to.host); err != nil || !addr.Is4() {
			return to, false
		}
		to.plain = false
	}
	if end < len(url) && url[end] == ':' {
		digits := end + 1
		for end++; end < len(url) && url[end]-'0' <= 9; end++ {
		}
		to.port = url[digits:end]
		if !plainPort(to.port, to.tls) {
			return to, false
		}
	}
	to.authority = url[start:end]
	if end == len(url) {
		to.canonical, to.target = url+"/", "/"
		return to, true
	}
	stop, ok := scanTarget(url, end)
	if ok {
		to.canonical, to.target = url[:stop], url[end:stop]
	}
	return to, ok
}

// scanTarget reads path, query and fragment from start on, and answers where path and query end.
func scanTarget(url string, start int) (int, bool) {
	if url[start] != '/' {
		return 0, false
	}
	i := start
	for ; i < len(url) && classes[url[i]]&inPath != 0; i++ {
		// A dot segment, also a percent-encoded one, moves the path.
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

// plainHost says whether lower-case letters, digits, dots and hyphens make a host name that the standard leaves as it
// is: no punycode to check, nothing that could be a number, no odd hyphens or dots.
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

// plainPort says whether digits are a port as the standard would write it.
func plainPort(digits string, tls bool) bool {
	if len(digits) == 0 || len(digits) > 5 || digits[0] == '0' || len(digits) == 5 && digits > "65535" {
		return false
	}
	return digits != "80" && !tls || digits != "443" && tls
}

// detailOf is the sentence for the user in a coded error.
func detailOf(err error) string {
	var coded *fault.Error
	if errors.As(err, &coded) {
		return coded.Detail
	}
	return ""
}
