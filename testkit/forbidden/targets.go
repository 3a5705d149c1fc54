package forbidden

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// Public are the addresses that may be reached. A trap serves there, which shows that a test makes
// requests at all.
var Public = []netip.Addr{netip.MustParseAddr("93.184.216.34"),
	netip.MustParseAddr("2606:2800:220:1:248:1893:25c8:1946")}

// ipv4 are addresses of every range that is not on the public internet, and clouds' metadata
// addresses.
var ipv4 = []string{
	"0.0.0.0", "0.1.2.3", "10.0.0.1", "10.255.255.254", "100.64.0.1", "100.127.255.254",
	"100.100.100.200",
	"127.0.0.1", "127.8.9.10", "127.255.255.254", "168.63.129.16", "169.254.0.1", "169.254.169.254",
	"169.254.170.2",
	"169.254.170.23", "172.16.0.1", "172.31.255.254", "192.0.0.8", "192.0.0.192", "192.0.2.1",
	"192.168.0.1",
	"192.168.255.254", "198.18.0.1", "198.19.255.254", "198.51.100.1", "203.0.113.1", "224.0.0.1",
	"239.255.255.250",
	"240.0.0.1", "255.255.255.255",
}

var ipv6 = []string{
	"::", "::1", "100::1", "2001:db8::1", "2001:10::1", "2001:2::1", "3fff::1", "5f00::1",
	"fc00::1", "fd00::1", "fd00:ec2::254",
	"fd00:ec2::23", "fd20:ce::254", "fdff:ffff::1", "fe80::1", "febf::1", "fec0::1", "ff02::1",
	"ff0e::1",
	"64:ff9b:1::1",
}

// Addresses returns the forbidden addresses: IPv4, IPv6, and IPv6 addresses that embed the IPv4
// ones in any of the known ways.
func Addresses() []netip.Addr {
	var all []netip.Addr
	for _, text := range ipv4 {
		addr := netip.MustParseAddr(text)
		all = append(all, addr)
		all = append(all, embeddings(addr.As4())...)
	}
	for _, text := range ipv6 {
		all = append(all, netip.MustParseAddr(text))
	}
	return all
}

// embeddings returns the IPv6 addresses that embed an IPv4 one: mapped, compatible, translated,
// NAT64 (well known, local), 6to4 and Teredo. Teredo embeds it as the server, or, with inverted
// bits, as the client.
func embeddings(v4 [4]byte) []netip.Addr {
	hex := fmt.Sprintf("%02x%02x:%02x%02x", v4[0], v4[1], v4[2], v4[3])
	turned := fmt.Sprintf("%02x%02x:%02x%02x", ^v4[0], ^v4[1], ^v4[2], ^v4[3])
	var all []netip.Addr
	for _, text := range []string{"::ffff:" + hex, "::" + hex, "::ffff:0:" + hex, "64:ff9b::" + hex,
		"64:ff9b:1::" + hex,
		"2002:" + hex + "::1", "2001:0:" + hex + "::1", "2001:0:4136:e378:8000:63bf:" + turned} {
		all = append(all, netip.MustParseAddr(text))
	}
	return all
}

// Target is an address as an attacker might write it.
type Target struct {
	URL string
	For netip.Addr // the address it aims at
}

// Targets returns all spellings of all forbidden addresses, some 6,000.
func Targets() []Target {
	var all []Target
	seen := map[string]bool{}
	add := func(addr netip.Addr, url string) {
		if !seen[url] {
			seen[url] = true
			all = append(all, Target{URL: url, For: addr})
		}
	}
	for _, addr := range Addresses() {
		hosts := hosts6(addr)
		if addr.Is4() {
			hosts = hosts4(addr.As4())
		}
		for i, host := range hosts {
			add(addr, "http://"+host+"/")
			add(addr, "http://"+host+":8080/")
			if i%4 == 0 {
				add(addr, "https://"+host+"/latest/meta-data/")
			}
		}
		for _, url := range tricks(hosts[0]) {
			add(addr, url)
		}
	}
	return all
}

// hosts4 returns the spellings of an IPv4 address, dotted decimal first.
func hosts4(v4 [4]byte) []string {
	plain := netip.AddrFrom4(v4).String()
	number := uint64(v4[0])<<24 | uint64(v4[1])<<16 | uint64(v4[2])<<8 | uint64(v4[3])
	hosts := []string{plain, plain + "."}
	radix := []func(uint64) string{
		func(n uint64) string { return strconv.FormatUint(n, 10) },
		func(n uint64) string { return "0" + strconv.FormatUint(n, 8) },
		func(n uint64) string { return "0x" + strconv.FormatUint(n, 16) },
		func(n uint64) string { return "0X" + strings.ToUpper(strconv.FormatUint(n, 16)) },
		func(n uint64) string { return "0x0000" + strconv.FormatUint(n, 16) },
		func(n uint64) string { return "0000" + strconv.FormatUint(n, 8) },
	}
	for i, first := range radix {
		last := radix[(i+1)%len(radix)]
		hosts = append(hosts, first(number),
			first(uint64(v4[0]))+"."+last(number&0xffffff),
			first(uint64(v4[0]))+"."+last(uint64(v4[1]))+"."+first(number&0xffff),
			first(uint64(v4[0]))+"."+last(uint64(v4[1]))+"."+last(uint64(v4[2]))+"."+
				first(uint64(v4[3])))
	}
	// too large: some parsers take it modulo 2^32
	hosts = append(hosts, strconv.FormatUint(number+1<<32, 10))
	for _, dot := range []string{"。", "．", "｡"} {
		hosts = append(hosts, strings.ReplaceAll(plain, ".", dot))
	}
	hosts = append(hosts, digits(plain, '０'), digits(plain, '𝟎'), digits(plain, '𝟘'),
		circled(plain),
		percent(plain), strings.ReplaceAll(plain, ".", "%2e"),
		strings.ReplaceAll(plain, ".", "%E3%80%82"),
		plain[:1]+"\u00ad"+plain[1:], plain[:1]+"\t"+plain[1:], plain+"%00", plain+"%20")
	return hosts
}

// hosts6 returns the spellings of an IPv6 address.
func hosts6(addr netip.Addr) []string {
	b := addr.As16()
	var groups []string
	for i := 0; i < len(b); i += 2 {
		groups = append(groups, fmt.Sprintf("%02x%02x", b[i], b[i+1]))
	}
	short, long := addr.String(), strings.Join(groups, ":")
	dotted := strings.Join(groups[:6], ":") + ":" + netip.AddrFrom4([4]byte(b[12:])).String()
	hosts := []string{"[" + short + "]"}
	for _, text := range []string{long, strings.ToUpper(short), strings.ToUpper(long), dotted,
		short + "%25lo", short + "%lo",
		short + "%251", short + "%25eth0"} {
		hosts = append(hosts, "["+text+"]")
	}
	return append(hosts, "["+short+"].", percent("["+short+"]"), short)
}

// tricks returns URLs in which one parser sees the host and another does not.
func tricks(host string) []string {
	const good = "public.example"
	return []string{
		"http://user:password@" + host + "/", "http://" + good + "@" + host + "/",
		"http://" + good + ":80@" + host + "/",
		"http://" + good + "%40" + host + "/", "http://" + good + "%2f@" + host + "/",
		"http://" + host + "\\@" + good + "/",
		"http://" + good + "\\@" + host + "/", "http://" + host + "#@" + good + "/",
		"http://" + host + "?@" + good + "/",
		"http://a@" + good + "@" + host + "/", "http://" + good + "#@" + host + "/",
		"http:\\\\" + host + "\\", "http:/" + host + "/",
		"http:" + host + "/", "http:///" + host + "/", "hTTp://" + host, "http://" + host + ":80/",
		"http://" + host + ":080/",
		"http://" + host + ":/", "http://" + host + ":22/", "http://" + host + ":6379/",
		"http://" + host + ":65535/",
		"http://" + host + ":0/", " http://" + host + "/ ", "ht\ntp://" + host + "/",
		"http://" + host + "\r\n/", "//" + host + "/",
		"http://" + host + "/../..//x", "ftp://" + host + "/", "file://" + host + "/etc/passwd",
		"gopher://" + host + ":6379/_INFO",
		"http://" + host + "\u3000/", "ws://" + host + "/", "view-source:http://" + host + "/",
		"blob:http://" + host + "/x",
	}
}

// digits replaces decimal digits with another alphabet's.
func digits(text string, zero rune) string {
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return zero + r - '0'
		}
		return r
	}, text)
}

func circled(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '0':
			return '⓪'
		case r >= '1' && r <= '9':
			return '①' + r - '1'
		}
		return r
	}, text)
}

func percent(text string) string {
	var out strings.Builder
	for _, c := range []byte(text) {
		fmt.Fprintf(&out, "%%%02X", c)
	}
	return out.String()
}
