// Package robots interprets robots.txt files (RFC 9309, sitemaps.org): which paths they allow an
// agent, how long it must wait between requests, and where sitemaps are. It fetches nothing and
// keeps nothing.
package robots

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/jimsmart/grobotstxt"
)

// Bounds of reading a file.
const (
	// MaxBody is how many bytes of a file are read: the minimum in RFC 9309.
	MaxBody = 500 << 10
	// MaxDelay is the longest Crawl-delay that is respected.
	MaxDelay = 30 * time.Second
	// MaxSitemaps is the most sitemaps read from a file; others are ignored.
	MaxSitemaps = 1_000
)

// Path is the path of the file on a site.
const Path = "/robots.txt"

// Rules are the lines of a robots.txt for an agent, ready for matching. They never change.
// grobotstxt parses the file once; its own matcher would parse it again for every page.
type Rules struct {
	lines []rule
	// Delay is the Crawl-delay, at most MaxDelay; 0: none.
	Delay time.Duration
	// Size is the approximate size of the rules in bytes.
	Size int
	// Sitemaps are the addresses of sitemaps in the file, as written. They apply to all agents.
	Sitemaps []string
}

// rule allows or forbids the paths that match its pattern.
type rule struct {
	allow    bool
	priority int      // the longest pattern wins
	parts    []string // between the asterisks
	anchored bool     // the pattern ends in $
}

// Parse selects the groups for an agent, or those for everyone if none names it. A missing file is
// an empty one.
func Parse(body, agent string) *Rules {
	reader := &groups{agent: agent}
	// grobotstxt's own upper-casing of escapes corrupts their digits
	grobotstxt.Parse(sameEscapes(body), reader)
	found := &reader.everyone
	if reader.named {
		found = &reader.ours
	}
	found.Sitemaps = reader.sitemaps
	for _, address := range found.Sitemaps {
		found.Size += len(address)
	}
	return found
}

// Allow reports whether a path with its query may be fetched. The longest matching pattern decides;
// allow wins a tie.
func (r *Rules) Allow(path string) bool {
	if len(r.lines) == 0 || path == Path {
		return true
	}
	path = sameEscapes(escape(path))
	allowed, forbidden := 0, 0
	for i := range r.lines {
		line := &r.lines[i]
		if line.allow && line.priority > allowed && line.matches(path) {
			allowed = line.priority
		} else if !line.allow && line.priority > forbidden && line.matches(path) {
			forbidden = line.priority
		}
	}
	return forbidden <= allowed
}

func (r *Rules) add(allow bool, pattern string) {
	pattern = escape(pattern)
	line := rule{allow: allow, priority: len(pattern)}
	pattern, line.anchored = strings.CutSuffix(strings.Clone(pattern), "$")
	line.parts = strings.Split(pattern, "*")
	r.lines = append(r.lines, line)
	r.Size += len(pattern) + 16*len(line.parts) + 64
}

// matches finds the parts in order, each at its first occurrence. Its time is linear in the
// lengths, for any pattern.
func (l *rule) matches(path string) bool {
	rest, ok := strings.CutPrefix(path, l.parts[0])
	if !ok {
		return false
	}
	last := len(l.parts) - 1
	if last == 0 {
		return !l.anchored || rest == ""
	}
	for _, part := range l.parts[1:last] {
		at := strings.Index(rest, part)
		if at < 0 {
			return false
		}
		rest = rest[at+len(part):]
	}
	if l.anchored {
		return strings.HasSuffix(rest, l.parts[last])
	}
	return strings.Contains(rest, l.parts[last])
}

// escape percent-encodes characters that addresses cannot contain, as both clients and sites may
// have done.
func escape(s string) string {
	plain := 0
	for plain < len(s) && isInAddress(s[plain]) {
		plain++
	}
	if plain == len(s) {
		return s
	}
	out := make([]byte, 0, len(s)+8)
	for i := range len(s) {
		if isInAddress(s[i]) {
			out = append(out, s[i])
		} else {
			out = fmt.Appendf(out, "%%%02X", s[i])
		}
	}
	return string(out)
}

// isInAddress reports whether an address may contain a character unescaped: unreserved ones,
// reserved ones, and the percent sign.
func isInAddress(c byte) bool {
	return isUnreserved(c) || strings.IndexByte("%:/?#[]@!$&'()*+,;=", c) >= 0
}

// sameEscapes normalizes percent escapes for comparison, as in RFC 9309: unreserved characters
// unescaped, the others in upper case.
func sameEscapes(s string) string {
	if strings.IndexByte(s, '%') < 0 {
		return s
	}
	var out strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '%' || i+2 >= len(s) {
			out.WriteByte(s[i])
			continue
		}
		code, err := strconv.ParseUint(s[i+1:i+3], 16, 8)
		switch {
		case err != nil:
			out.WriteByte('%')
			continue
		case isUnreserved(byte(code)):
			out.WriteByte(byte(code))
		default:
			out.WriteString(strings.ToUpper(s[i : i+3]))
		}
		i += 2
	}
	return out.String()
}

func isUnreserved(c byte) bool {
	return c|0x20 >= 'a' && c|0x20 <= 'z' || c >= '0' && c <= '9' ||
		strings.IndexByte("-._~", c) >= 0
}

// ProductToken returns the name of a user agent: "Shoal" for "Shoal/1.0 (+https://…)".
func ProductToken(userAgent string) string {
	end := strings.IndexFunc(userAgent, func(c rune) bool {
		return !(c|0x20 >= 'a' && c|0x20 <= 'z' || c == '_' || c == '-')
	})
	if end < 0 {
		return userAgent
	}
	return userAgent[:end]
}

// groups collects the two sets of rules while grobotstxt parses a file. A group is a sequence of
// User-agent lines and the rules up to the next such sequence.
type groups struct {
	agent          string
	ours, everyone Rules
	sitemaps       []string
	named          bool // some group names us
	inOurs, inAll  bool // the current group applies to us, to everyone
	begun          bool // the current group has a rule
}

// HandleRobotsStart does nothing: the sets are new.
func (g *groups) HandleRobotsStart() {}

// HandleRobotsEnd does nothing.
func (g *groups) HandleRobotsEnd() {}

// HandleSitemap notes a sitemap. Sitemaps apply to all agents and end no group.
func (g *groups) HandleSitemap(_ int, address string) {
	if address != "" && len(g.sitemaps) < MaxSitemaps {
		g.sitemaps = append(g.sitemaps, strings.Clone(address))
	}
}

// HandleUserAgent begins a group, or extends one without rules.
func (g *groups) HandleUserAgent(_ int, name string) {
	if g.begun {
		g.inOurs, g.inAll, g.begun = false, false, false
	}
	if strings.HasPrefix(name, "*") && (len(name) == 1 || name[1] == ' ' || name[1] == '\t') {
		g.inAll = true
	} else if strings.EqualFold(ProductToken(name), g.agent) {
		g.inOurs, g.named = true, true
	}
}

// HandleAllow adds a rule. "/index.html" also allows its folder.
func (g *groups) HandleAllow(_ int, pattern string) {
	g.rule(true, pattern)
	if slash := strings.LastIndexByte(pattern, '/'); slash >= 0 &&
		strings.HasPrefix(pattern[slash:], "/index.htm") {
		g.rule(true, pattern[:slash+1]+"$")
	}
}

// HandleDisallow adds a rule.
func (g *groups) HandleDisallow(_ int, pattern string) { g.rule(false, pattern) }

// HandleUnknownAction reads Crawl-delay, in seconds.
func (g *groups) HandleUnknownAction(_ int, action, value string) {
	if !strings.EqualFold(action, "crawl-delay") {
		return
	}
	seconds, err := strconv.ParseFloat(value, 64)
	if err != nil || math.IsNaN(seconds) || seconds < 0 {
		return
	}
	delay := time.Duration(min(seconds, MaxDelay.Seconds()) * float64(time.Second))
	if g.inOurs {
		g.ours.Delay = delay
	}
	if g.inAll {
		g.everyone.Delay = delay
	}
}

func (g *groups) rule(allow bool, pattern string) {
	if !g.inOurs && !g.inAll {
		return
	}
	g.begun = true
	if pattern == "" {
		return
	}
	// As in grobotstxt, a group for both counts as ours.
	if g.inOurs {
		g.ours.add(allow, pattern)
	} else {
		g.everyone.add(allow, pattern)
	}
}
