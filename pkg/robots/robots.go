// Package robots owns what a robots.txt says (RFC 9309, sitemaps.org). That is which paths it
// leaves to an agent, how long that is to wait between requests, and where sitemaps are. It fetches
// nothing and keeps nothing.
package robots

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/jimsmart/grobotstxt"
)

// Bounds of what is read of a file.
const (
	// MaxBody is how many bytes of a file are read: what RFC 9309 wants at least.
	MaxBody = 500 << 10
	// MaxDelay is the longest Crawl-delay that is heeded.
	MaxDelay = 30 * time.Second
	// MaxSitemaps is how many sitemaps a file may name; the others are passed over.
	MaxSitemaps = 1_000
)

// Path is where the file of a site is.
const Path = "/robots.txt"

// Rules are the lines of a robots.txt that concern an agent, ready to be matched. The file is read
// once by grobotstxt; its own matcher would read it again for every page. They never change.
type Rules struct {
	lines []rule
	// Delay is the Crawl-delay, at most MaxDelay; 0: none.
	Delay time.Duration
	// Size is how many bytes the rules hold, about.
	Size int
	// Sitemaps are the addresses that the file names for everyone, as they are written.
	Sitemaps []string
}

// rule allows or forbids the paths that match its pattern.
type rule struct {
	allow    bool
	priority int      // the longest pattern wins
	parts    []string // what stands between the asterisks
	anchored bool     // the pattern ended in $
}

// Parse picks the groups for an agent, or those for everyone where none names it. An absent file
// is an empty one.
func Parse(body, agent string) *Rules {
	reader := &groups{agent: agent}
	// its own change of escapes to upper case spoils their digits
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

// Allow says whether a path with its query may be fetched. The longest matching pattern decides;
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

// matches finds the parts in order, each at its first place; time grows with the lengths, whatever
// the pattern.
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

// escape writes as percent escapes what addresses cannot have otherwise, as both clients and sites
// may have done.
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

// isInAddress says whether a character of an address stands for itself: the unreserved, the
// reserved, and the percent.
func isInAddress(c byte) bool {
	return isUnreserved(c) || strings.IndexByte("%:/?#[]@!$&'()*+,;=", c) >= 0
}

// sameEscapes writes percent escapes in one way, as RFC 9309 compares them: unreserved characters
// plain, the others in upper case.
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

// ProductToken is the name of a user agent: "Shoal" of "Shoal/1.0 (+https://…)".
func ProductToken(userAgent string) string {
	end := strings.IndexFunc(userAgent, func(c rune) bool {
		return !(c|0x20 >= 'a' && c|0x20 <= 'z' || c == '_' || c == '-')
	})
	if end < 0 {
		return userAgent
	}
	return userAgent[:end]
}

// groups collects the two sets of rules while grobotstxt reads a file. A group is a run of
// User-agent lines and the rules up to the next such run.
type groups struct {
	agent          string
	ours, everyone Rules
	sitemaps       []string
	named          bool // some group names us
	inOurs, inAll  bool // the group at hand is ours, everyone's
	begun          bool // the group at hand has a rule
}

// HandleRobotsStart does nothing: the set is new.
func (g *groups) HandleRobotsStart() {}

// HandleRobotsEnd does nothing.
func (g *groups) HandleRobotsEnd() {}

// HandleSitemap notes where a sitemap is: sitemaps are for all and end no group.
func (g *groups) HandleSitemap(_ int, address string) {
	if address != "" && len(g.sitemaps) < MaxSitemaps {
		g.sitemaps = append(g.sitemaps, strings.Clone(address))
	}
}

// HandleUserAgent begins a group or widens the one that has no rule yet.
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

// HandleAllow adds a rule. "/index.html" stands for its folder too.
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
	// As in grobotstxt, a group for both us and everyone counts as ours.
	if g.inOurs {
		g.ours.add(allow, pattern)
	} else {
		g.everyone.add(allow, pattern)
	}
}
