// Package forwarded finds the caller behind proxies. It reads Forwarded (RFC 7239) and
// X-Forwarded-For, and believes only what trusted proxies have written (decision 55). It knows no
// request and keeps nothing.
package forwarded

import (
	"net/netip"
	"slices"
	"strings"
)

// Proxies are the ranges of trusted proxies. Without any, the headers are ignored.
type Proxies []netip.Prefix

// Trust says whether an address is that of a trusted proxy.
func (p Proxies) Trust(address netip.Addr) bool {
	return slices.ContainsFunc(p, func(of netip.Prefix) bool { return of.Contains(plain(address)) })
}

// Caller is the first address that is not a trusted proxy, on the way from the peer back to the
// sender. forwarded and xForwardedFor are the values of these headers, line by line. If the way
// cannot be followed, the last proxy reached is the caller. If the headers disagree, it is the
// peer, since the sender wrote one of them.
func (p Proxies) Caller(peer netip.Addr, forwarded, xForwardedFor []string) netip.Addr {
	peer = plain(peer)
	if !p.Trust(peer) {
		return peer
	}
	var said []netip.Addr
	if len(forwarded) > 0 {
		said = append(said, p.follow(peer, forwarded, forNodes))
	}
	if len(xForwardedFor) > 0 {
		said = append(said, p.follow(peer, xForwardedFor, listNodes))
	}
	if len(said) == 0 || said[0] != said[len(said)-1] {
		return peer
	}
	return said[0]
}

// follow goes back from the peer, beginning at the end of the last line, while trusted proxies say
// where to. nodes splits a line, and says whether it could.
func (p Proxies) follow(at netip.Addr, lines []string,
	nodes func(line string) ([]string, bool)) netip.Addr {
	for _, line := range slices.Backward(lines) {
		names, whole := nodes(line)
		if !whole {
			return at
		}
		for _, name := range slices.Backward(names) {
			next, known := parseNode(name)
			if !known {
				return at
			}
			if at = next; !p.Trust(at) {
				return at
			}
		}
	}
	return at
}

// listNodes splits a line of X-Forwarded-For.
func listNodes(line string) (nodes []string, whole bool) {
	for part := range strings.SplitSeq(line, ",") {
		if part = trim(part); part != "" {
			nodes = append(nodes, part)
		}
	}
	return nodes, true
}

// forNodes returns the parameters "for" of a line of Forwarded. An element without one has the node
// "". A malformed line is refused as a whole, as it may be written to be misread.
func forNodes(line string) (nodes []string, whole bool) {
	for rest := line; ; {
		node, given, empty := "", false, true
		for {
			rest = strings.TrimLeft(rest, " \t")
			name := rest[:tokenLength(rest)]
			if rest = rest[len(name):]; name != "" {
				value, after, ok := parameterValue(rest)
				if !ok {
					return nil, false
				}
				rest, empty = after, false
				if strings.EqualFold(name, "for") {
					if given {
						return nil, false
					}
					node, given = value, true
				}
			}
			rest = strings.TrimLeft(rest, " \t")
			if !strings.HasPrefix(rest, ";") {
				break
			}
			rest = rest[1:]
		}
		if !empty {
			nodes = append(nodes, node)
		}
		if rest == "" {
			return nodes, true
		}
		if rest[0] != ',' {
			return nil, false
		}
		rest = rest[1:]
	}
}

// parameterValue reads "=" and a token or a quoted string.
func parameterValue(text string) (value, rest string, ok bool) {
	text, ok = strings.CutPrefix(text, "=")
	if !ok {
		return "", "", false
	}
	if !strings.HasPrefix(text, `"`) {
		length := tokenLength(text)
		return text[:length], text[length:], length > 0
	}
	var unquoted strings.Builder
	for i := 1; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"':
			return unquoted.String(), text[i+1:], true
		case c == '\\' && i+1 < len(text):
			i++
			unquoted.WriteByte(text[i])
		default:
			unquoted.WriteByte(c)
		}
	}
	return "", "", false
}

// tokenLength is the length of the token (RFC 9110) at the start of text. It includes colons and
// brackets, since some proxies do not quote IPv6 addresses and addresses with a port.
func tokenLength(text string) int {
	for i := range len(text) {
		c := text[i]
		letter := 'a' <= c|0x20 && c|0x20 <= 'z' || '0' <= c && c <= '9'
		if !letter && !strings.ContainsRune("!#$%&'*+-.^_`|~:[]", rune(c)) {
			return i
		}
	}
	return len(text)
}

// parseNode reads an address with or without a port: 192.0.2.1, 192.0.2.1:80, 2001:db8::1,
// [2001:db8::1], [2001:db8::1]:80. It does not accept "unknown" and other names.
func parseNode(text string) (netip.Addr, bool) {
	if inner, bracketed := strings.CutPrefix(text, "["); bracketed {
		host, port, closed := strings.Cut(inner, "]")
		address, err := netip.ParseAddr(host)
		if !closed || err != nil || !address.Is6() || port != "" && port[0] != ':' {
			return netip.Addr{}, false
		}
		return plain(address), true
	}
	if strings.Count(text, ":") == 1 {
		text, _, _ = strings.Cut(text, ":")
	}
	address, err := netip.ParseAddr(text)
	return plain(address), err == nil
}

func trim(text string) string { return strings.Trim(text, " \t") }

// plain is an address in its plain form: unmapped from IPv6 to IPv4, and without a zone.
func plain(address netip.Addr) netip.Addr { return address.Unmap().WithZone("") }

// Site is the IPv6 /48 of an address, which one holder of many networks usually has. It is "" for
// an IPv4 address.
func Site(address netip.Addr) string {
	address = plain(address)
	if !address.Is6() {
		return ""
	}
	site, _ := address.Prefix(48) // 48 is within its bits
	return site.String()
}

// Holder names the limit that an address counts against: the address itself, or for IPv6 its /64,
// which one caller usually has.
func Holder(address netip.Addr) string {
	address = plain(address)
	if address.Is6() {
		network, _ := address.Prefix(64) // 64 is within its bits
		return network.String()
	}
	return address.String()
}
