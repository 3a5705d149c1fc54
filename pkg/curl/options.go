package curl

import (
	"encoding/base64"
	"strings"

	"shoal.dev/shoal/pkg/egress"
)

// reading is the state of parsing a command.
type reading struct {
	urls    []string
	method  string // from -X
	header  []egress.Field
	none    []string // fields not to send, in lower case
	agent   *string
	referer string
	cookies []string
	auth    string
	data    []string // joined by &
	json    bool     // from --json: data joined without &
	form    []part
	get     bool
	head    bool
	literal bool // from -g
	trust   bool // from -k
}

// option says how to parse an option. A nil apply means that the option has no effect here.
type option struct {
	value bool // takes a value
	apply func(c *reading, value string) error
}

// options are the known options, by long name.
var options = map[string]option{
	"url": {true, func(c *reading,
		v string) error {
		c.urls = append(c.urls, v)
		return nil
	}},
	"request":    {true, func(c *reading, v string) error { c.method = v; return nil }},
	"header":     {true, (*reading).addHeader},
	"user-agent": {true, func(c *reading, v string) error { c.agent = &v; return nil }},
	"referer":    {true, (*reading).setReferer},
	"cookie":     {true, (*reading).addCookie},
	"user":       {true, (*reading).setUser},
	"oauth2-bearer": {true, func(c *reading,
		v string) error {
		c.auth = "Bearer " + v
		return nil
	}},
	"data": {true, func(c *reading, v string) error { return c.addData("--data", v) }},
	"data-ascii": {true, func(c *reading,
		v string) error {
		return c.addData("--data-ascii", v)
	}},
	"data-binary": {true, func(c *reading,
		v string) error {
		return c.addData("--data-binary", v)
	}},
	"data-raw": {true, func(c *reading,
		v string) error {
		c.data = append(c.data, v)
		return nil
	}},
	"data-urlencode": {true, (*reading).addEncoded},
	"json":           {true, (*reading).addJSON},
	"form":           {true, (*reading).addPart},
	"form-string":    {true, (*reading).addText},
	"get":            {false, func(c *reading, _ string) error { c.get = true; return nil }},
	"head":           {false, func(c *reading, _ string) error { c.head = true; return nil }},
	"globoff":        {false, func(c *reading, _ string) error { c.literal = true; return nil }},
	"insecure":       {false, func(c *reading, _ string) error { c.trust = true; return nil }},
	"compressed":     {},
	"location":       {},
	"silent":         {},
	"show-error":     {},
	"include":        {},
	"verbose":        {},
	"fail":           {},
	"no-buffer":      {},
	"progress-bar":   {},
	"http1.1":        {},
	"http2":          {},
	"tlsv1.2":        {},
}

var shorts = map[byte]string{'X': "request", 'H': "header", 'A': "user-agent", 'e': "referer",
	'b': "cookie", 'u': "user",
	'd': "data", 'F': "form", 'G': "get", 'I': "head", 'g': "globoff", 'L': "location",
	's': "silent", 'S': "show-error",
	'i': "include", 'v': "verbose", 'f': "fail", 'N': "no-buffer", '#': "progress-bar",
	// Refused options.
	'o': "output", 'O': "remote-name", 'T': "upload-file", 'K': "config", 'c': "cookie-jar",
	'x': "proxy", 'E': "cert",
	'k': "insecure", 'D': "dump-header", 'n': "netrc", 'J': "remote-header-name",
	'C': "continue-at", 'w': "write-out",
	'U': "proxy-user", 'r': "range", 'z': "time-cond", 'Q': "quote", 'P': "ftp-port",
	't': "telnet-option",
	'm': "max-time", 'p': "proxytunnel", 'Z': "parallel", 'R': "remote-time", ':': "next",
	'j': "junk-session-cookies"}

// Reasons for refusing options.
const (
	files     = "it reads or writes files"
	elsewhere = "it sends the request elsewhere or by another way"
	trust     = "certificates are always checked, and none of one's own is sent"
	several   = "it makes more than one request"
	partial   = "each fetch wants the whole page"
	pace      = "time, tries and pace are the scraper's"
)

// refused names options that are known but not allowed. Unknown options are refused, too.
var refused = map[string]string{
	"output": files, "output-dir": files, "remote-name": files, "remote-name-all": files,
	"remote-header-name": files,
	"upload-file":        files, "config": files, "cookie-jar": files, "dump-header": files,
	"continue-at": files, "netrc": files,
	"netrc-file": files, "netrc-optional": files, "trace": files, "trace-ascii": files,
	"stderr": files, "write-out": files,
	"etag-save": files, "etag-compare": files, "hsts": files, "alt-svc": files, "libcurl": files,
	"egd-file":    files,
	"random-file": files, "remote-time": files, "create-dirs": files,
	"url-query": "write the query into the address",
	"variable":  files, "expand-url": files, "expand-data": files, "expand-header": files,
	"junk-session-cookies": files,
	"proxy":                elsewhere, "preproxy": elsewhere, "proxy-user": elsewhere,
	"proxy-header": elsewhere,
	"proxytunnel":  elsewhere,
	"proxy1.0":     elsewhere, "noproxy": elsewhere, "socks4": elsewhere, "socks4a": elsewhere,
	"socks5":          elsewhere,
	"socks5-hostname": elsewhere, "resolve": elsewhere, "connect-to": elsewhere,
	"unix-socket":          elsewhere,
	"abstract-unix-socket": elsewhere, "interface": elsewhere, "local-port": elsewhere,
	"dns-servers":   elsewhere,
	"dns-interface": elsewhere, "dns-ipv4-addr": elsewhere, "dns-ipv6-addr": elsewhere,
	"doh-url":          elsewhere,
	"haproxy-protocol": elsewhere, "location-trusted": "credentials never go to another host",
	"proto":         elsewhere,
	"proto-default": elsewhere, "proto-redir": elsewhere, "quote": elsewhere, "ftp-port": elsewhere,
	"telnet-option": elsewhere, "mail-from": elsewhere, "mail-rcpt": elsewhere,
	"request-target": elsewhere,
	"ipfs-gateway":   elsewhere,
	"proxy-insecure": trust, "cert": trust, "cert-type": trust, "key": trust, "key-type": trust,
	"cacert": trust, "capath": trust, "crlfile": trust, "pinnedpubkey": trust, "ciphers": trust,
	"engine": trust,
	"next":   several, "parallel": several, "range": partial, "time-cond": partial,
	"path-as-is": "addresses are read as browsers do",
	"max-time":   pace, "connect-timeout": pace, "retry": pace, "retry-delay": pace,
	"retry-max-time":   pace,
	"retry-all-errors": pace, "limit-rate": pace, "rate": pace, "speed-limit": pace,
	"speed-time": pace,
	"digest":     "only Basic and Bearer are known", "ntlm": "only Basic and Bearer are known",
	"negotiate": "only Basic and Bearer are known", "anyauth": "only Basic and Bearer are known",
	"aws-sigv4": "only Basic and Bearer are known",
}

// read parses the words after the program's name.
func (c *reading) read(words []string) error {
	for len(words) > 0 {
		word := words[0]
		words = words[1:]
		var err error
		switch {
		case word == "--":
			return invalid("the option -- is not allowed")
		case strings.HasPrefix(word, "--"):
			words, err = c.applyOption("--"+word[2:], word[2:], nil, words)
		case len(word) > 1 && word[0] == '-':
			words, err = c.readShort(word[1:], words)
		default:
			c.urls = append(c.urls, word)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// readShort parses a cluster of short options; an option's value may be the rest of it.
func (c *reading) readShort(cluster string, words []string) ([]string, error) {
	for i := range len(cluster) {
		shown := "-" + cluster[i:i+1]
		name, known := shorts[cluster[i]]
		if !known {
			return nil, invalid("the option %s is not known here; leave it out", shown)
		}
		if !options[name].value {
			var err error
			if words, err = c.applyOption(shown, name, nil, words); err != nil {
				return nil, err
			}
			continue
		}
		var attached *string
		if rest := cluster[i+1:]; rest != "" {
			attached = &rest
		}
		return c.applyOption(shown, name, attached, words)
	}
	return words, nil
}

// applyOption applies an option and returns the words after it.
func (c *reading) applyOption(shown, name string, value *string, words []string) ([]string, error) {
	o, known := options[name]
	if !known {
		if reason, ok := refused[name]; ok {
			return nil, invalid("the option %s is not allowed: %s", shown, reason)
		}
		return nil, invalid("the option %.40s is not known here; leave it out", shown)
	}
	if o.value && value == nil {
		if len(words) == 0 {
			return nil, invalid("the option %s needs a value", shown)
		}
		value, words = &words[0], words[1:]
	}
	if o.apply == nil {
		return words, nil
	}
	given := ""
	if value != nil {
		given = *value
	}
	return words, o.apply(c, given)
}

// addHeader parses "Name: value", "Name;" (empty) and "Name:" (none, not even curl's default).
func (c *reading) addHeader(text string) error {
	if strings.HasPrefix(text, "@") {
		return invalid("the option -H with @ is not allowed: %s", files)
	}
	text = strings.TrimPrefix(text, ":") // pseudo-fields, as some browsers write them
	name, value, colon := strings.Cut(text, ":")
	if !colon {
		empty, ok := strings.CutSuffix(strings.TrimSpace(text), ";")
		if !ok {
			return invalid("a header field (-H) is written as Name: value")
		}
		c.header = append(c.header, egress.Field{Name: empty})
		return nil
	}
	name, value = strings.TrimSpace(name), strings.Trim(value, " \t")
	if value == "" {
		c.none = append(c.none, strings.ToLower(name))
		return nil
	}
	c.header = append(c.header, egress.Field{Name: name, Value: value})
	return nil
}

func (c *reading) setReferer(value string) error {
	if strings.HasSuffix(value, ";auto") {
		return invalid("the option -e with ;auto is not allowed: write the address alone")
	}
	c.referer = value
	return nil
}

func (c *reading) addCookie(value string) error {
	if !strings.Contains(value, "=") {
		return invalid("the option -b without = is not allowed: it reads a file; write name=value")
	}
	c.cookies = append(c.cookies, strings.Trim(value, "; "))
	return nil
}

func (c *reading) setUser(value string) error {
	switch {
	case !strings.Contains(value, ":"):
		return invalid("the option -u needs name:password")
	case placeholder.MatchString(value):
		return invalid("placeholders may not stand in -u, which encodes them: write the field " +
			"Authorization with -H")
	}
	c.auth = "Basic " + base64.StdEncoding.EncodeToString([]byte(value))
	return nil
}
