// Package prelaunch finds the values of placeholders in a curl command (specification 2.3). Its
// rules, checked and compiled once, say how to find them on a page. It also finds the build id of a
// site's framework, without rules. It fetches and keeps nothing (the fetcher does).
package prelaunch

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/zeebo/xxh3"
	"golang.org/x/net/html"

	"shoal.dev/shoal/pkg/curl"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/pattern"
)

// The sources of a token.
const (
	FrameworkData = "FRAMEWORK_DATA" // a JSON pointer into the page's embedded framework data
	Meta          = "META"           // a meta element, by its name
	// the first group of a regular expression, applied to the page as received
	Regex = "REGEX"
)

// Bounds.
const (
	DefaultTTL    = 360 * time.Minute
	maxTTL        = 43_200 // minutes
	maxTokens     = 50
	maxName       = 64
	maxExpression = 2_048 // characters
	maxPattern    = 512   // characters, of validatePattern
	maxValue      = 4_096 // bytes
)

// DefaultPattern is what a value must match by default.
const DefaultPattern = `^[A-Za-z0-9._=+/~-]{1,4096}$`

var names = regexp.MustCompile(`^[A-Za-z0-9_]+$`)

// Rules find the values of tokens on a page. They never change.
type Rules struct {
	URL    string // of the page
	TTL    time.Duration
	Hash   uint64 // of the configuration
	tokens []token

	patterns int
}

// Patterns returns the size of the rules' regular expressions, as pattern.Total counts it.
func (r *Rules) Patterns() int {
	if r == nil {
		return 0
	}
	return r.patterns
}

type token struct {
	name    string
	find    func(page *document) (string, error)
	pattern *pattern.Pattern
}

// Compile checks and compiles a configuration; without tokens, the rules are nil. It does not check
// where the discovery address leads. Faults have the code schema_validation_failed.
func Compile(p *model.Prelaunch) (*Rules, fault.List) {
	if p == nil || len(p.Tokens) == 0 {
		return nil, nil
	}
	var c checker
	r := &Rules{URL: p.DiscoveryURL, TTL: DefaultTTL, Hash: hash(p)}
	switch {
	case p.DiscoveryURL == "":
		c.invalid("discoveryUrl", "is required")
	case len((&curl.Request{URL: p.DiscoveryURL}).Placeholders()) > 0:
		c.invalid("discoveryUrl", "placeholders may not stand in it: it is read for their values")
	}
	if p.TTLMinutes != nil {
		if *p.TTLMinutes < 1 || *p.TTLMinutes > maxTTL {
			c.invalid("ttlMinutes", "must be 1 to %d", maxTTL)
		}
		r.TTL = time.Duration(*p.TTLMinutes) * time.Minute
	}
	if len(p.Tokens) > maxTokens {
		c.invalid("tokens", "at most %d tokens are allowed", maxTokens)
		return nil, c.faults
	}
	for i := range p.Tokens {
		r.tokens = append(r.tokens, c.token(fmt.Sprintf("tokens[%d].", i), &p.Tokens[i], r))
	}
	if len(c.faults) > 0 {
		return nil, c.faults
	}
	r.patterns = c.patterns.Size()
	return r, nil
}

// checker compiles rules, and collects their faults.
type checker struct {
	patterns pattern.Total
	faults   fault.List
}

func (c *checker) invalid(member, format string, args ...any) {
	c.faults = append(c.faults, fault.Invalid(fault.SchemaValidation,
		"sourceConfig.prelaunch."+member, format, args...))
}

// token compiles the rule at a place, after earlier ones.
func (c *checker) token(at string, rule *model.TokenRule, before *Rules) token {
	t := token{name: rule.Name}
	switch {
	case !names.MatchString(rule.Name) || len(rule.Name) > maxName:
		c.invalid(at+"name", "must be 1 to %d letters, digits and underscores", maxName)
	case before.Has(rule.Name):
		c.invalid(at+"name", "another token has this name")
	}
	var err error
	if t.find, err = finder(rule.Source, rule.Expression, &c.patterns); err != nil {
		member := "expression"
		if errors.Is(err, errSource) {
			member = "source"
		}
		c.invalid(at+member, "%v", err)
	}
	valid := rule.ValidatePattern
	if valid == "" || valid == DefaultPattern {
		// RE2 counts only to 1,000, and Find checks the length anyway
		valid = `^[A-Za-z0-9._=+/~-]+$`
	}
	if t.pattern, err = compilePattern(valid, maxPattern, &c.patterns); err != nil {
		c.invalid(at+"validatePattern", "must be a regular expression (RE2) of at most %d "+
			"characters: %v", maxPattern, err)
	}
	return t
}

func hash(p *model.Prelaunch) uint64 {
	text, err := json.Marshal(p)
	if err != nil {
		return 0 // strings and numbers always marshal
	}
	return xxh3.Hash(text)
}

// Errors of a configuration or a page.
var (
	errSource  = errors.New("must be one of FRAMEWORK_DATA, META, REGEX")
	errNoBuild = errors.New("the build id of the page is none")
)

// compilePattern compiles a pattern of a configuration.
func compilePattern(source string, most int, patterns *pattern.Total) (*pattern.Pattern, error) {
	return patterns.Compile(source, func(source string) (*pattern.Pattern, error) {
		return pattern.Compile(source, most)
	})
}

// finder compiles an expression.
func finder(source, expression string, patterns *pattern.Total) (func(*document) (string, error),
	error) {
	if expression == "" || utf8.RuneCountInString(expression) > maxExpression {
		return nil, fmt.Errorf("an expression of 1 to %d characters is needed", maxExpression)
	}
	switch source {
	case FrameworkData:
		if expression[0] != '/' {
			return nil, errors.New("a JSON pointer (RFC 6901) begins with /")
		}
		return func(d *document) (string, error) { return d.pointed(expression) }, nil
	case Meta:
		return func(d *document) (string, error) {
			content, found := d.meta(func(name string) bool {
				return strings.EqualFold(name,
					expression)
			})
			if !found {
				return "", errors.New("the page has no such meta element")
			}
			return content, nil
		}, nil
	case Regex:
		compiled, err := compilePattern(expression, maxExpression, patterns)
		if err != nil {
			return nil, fmt.Errorf("is no regular expression (RE2): %w", err)
		}
		if compiled.Groups() == 0 {
			return nil, errors.New("a regular expression with a capture group is needed")
		}
		return func(d *document) (string, error) {
			if d.text == "" {
				d.text = string(d.body)
			}
			match := compiled.Find(d.budget, d.text)
			switch {
			case d.budget.Err() != nil:
				return "", d.budget.Err()
			case match == nil:
				return "", errors.New("the expression does not match the page")
			case match[2] < 0: // the group did not participate
				return "", nil
			}
			return d.text[match[2]:match[3]], nil
		}, nil
	}
	return nil, errSource
}

// Has reports whether there is a rule for a placeholder.
func (r *Rules) Has(name string) bool {
	return r != nil && slices.ContainsFunc(r.tokens, func(t token) bool { return t.name == name })
}

// findSteps is the budget for the patterns of one discovery: some 5 s at worst.
const findSteps = 100_000_000

// Find reads the values of all tokens from a page. Its error names the first token without a value,
// and never quotes a value.
func (r *Rules) Find(ctx context.Context, page []byte) (map[string]string, error) {
	d := &document{body: page, budget: pattern.NewBudget(ctx, findSteps)}
	values := make(map[string]string, len(r.tokens))
	for _, t := range r.tokens {
		value, err := t.find(d)
		if err == nil && (len(value) > maxValue || !t.pattern.Match(d.budget, value)) {
			err = errors.New("the value does not fit validatePattern")
		}
		if d.budget.Err() != nil {
			err = d.budget.Err()
		}
		if err != nil {
			return nil, fmt.Errorf("prelaunch: token %s: %w", t.name, err)
		}
		values[t.name] = value
	}
	return values, nil
}

// document is a page that is parsed as far as needed.
type document struct {
	body []byte
	text string // of body, once a pattern has needed it
	data any    // embedded framework data
	read bool
	err  error

	budget *pattern.Budget
}

// frameworkIDs are the ids of script elements in which frameworks embed their data as JSON.
var frameworkIDs = []string{"__NEXT_DATA__", "__NUXT_DATA__"}

// framework returns the embedded data.
func (d *document) framework() (any, error) {
	if d.read {
		return d.data, d.err
	}
	d.read = true
	d.err = errors.New("the page has no embedded framework data")
	tokens := html.NewTokenizer(bytes.NewReader(d.body))
	for kind := tokens.Next(); kind != html.ErrorToken; kind = tokens.Next() {
		if kind != html.StartTagToken {
			continue
		}
		name, _ := tokens.TagName()
		if string(name) != "script" || !slices.Contains(frameworkIDs, attributes(tokens)["id"]) {
			continue
		}
		if tokens.Next() != html.TextToken {
			continue
		}
		decoder := json.NewDecoder(bytes.NewReader(tokens.Raw()))
		decoder.UseNumber()
		if d.err = decoder.Decode(&d.data); d.err != nil {
			d.err = errors.New("the page's embedded framework data is no JSON")
		}
		break
	}
	return d.data, d.err
}

// pointed returns the text, number or boolean at a JSON pointer.
func (d *document) pointed(pointer string) (string, error) {
	value, err := d.framework()
	if err != nil {
		return "", err
	}
	for _, step := range strings.Split(pointer[1:], "/") {
		step = strings.NewReplacer("~1", "/", "~0", "~").Replace(step)
		switch in := value.(type) {
		case map[string]any:
			var has bool
			if value, has = in[step]; !has {
				return "", errors.New("the pointer leads nowhere")
			}
		case []any:
			at, err := strconv.Atoi(step)
			if err != nil || at < 0 || at >= len(in) || strconv.Itoa(at) != step {
				return "", errors.New("the pointer leads nowhere")
			}
			value = in[at]
		default:
			return "", errors.New("the pointer leads nowhere")
		}
	}
	switch value := value.(type) {
	case string:
		return value, nil
	case json.Number:
		return value.String(), nil
	case bool:
		return strconv.FormatBool(value), nil
	}
	return "", errors.New("the pointer leads to no text or number")
}

// meta returns the content of the first meta element whose name passes meant.
func (d *document) meta(meant func(name string) bool) (content string, found bool) {
	tokens := html.NewTokenizer(bytes.NewReader(d.body))
	for kind := tokens.Next(); kind != html.ErrorToken; kind = tokens.Next() {
		if kind != html.StartTagToken && kind != html.SelfClosingTagToken {
			continue
		}
		if name, _ := tokens.TagName(); string(name) != "meta" {
			continue
		}
		attr := attributes(tokens)
		if name, named := attr["name"]; named && meant(name) {
			return attr["content"], true
		}
	}
	return "", false
}

// attributes returns the attributes of the current tag; the first one of a name counts.
func attributes(tokens *html.Tokenizer) map[string]string {
	found := map[string]string{}
	for more := true; more; {
		var name, value []byte
		name, value, more = tokens.TagAttr()
		if _, twice := found[string(name)]; !twice {
			found[string(name)] = string(value)
		}
	}
	return found
}
