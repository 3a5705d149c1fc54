// Package rules owns post-process rules (specification 2.2, decision 29). It checks and compiles
// them once, and applies them to rows in order, so that each rule sees the output of earlier ones.
// Exchange rates belong to the folder ecb; callers decide when rows are made. Applying rules reads
// only the row, the table of rates and the day.
package rules

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/pattern"
	"shoal.dev/shoal/pkg/rules/ecb"
	"shoal.dev/shoal/pkg/utf8text"
)

// Kind is what a rule does.
type Kind string

// The kinds of the specification.
const (
	CurrencyConvert Kind = "CURRENCY_CONVERT"
	EnumMap         Kind = "ENUM_MAP"
	RegexClean      Kind = "REGEX_CLEAN"
)

// Bounds. Lengths of names are in characters, others in bytes.
const (
	maxRules    = 100
	maxName     = 256
	maxParams   = 64 << 10 // of one rule, as JSON
	MaxRowBytes = 1_000_000
)

// reserved are the service's own columns. Rules may write neither them nor names that begin with _.
var reserved = []string{"date", "group", "groupId", "groupRef", "scraperId", "scraperRef",
	"scraperJobStatusId", "jobId",
	"customerRef", "sourceUrl", "finalUrl", "scrapedAt"}

// Rules are compiled rules in order. They never change.
type Rules struct {
	rules    []rule
	patterns int
}

// Patterns returns the size of the rules' regular expressions, as pattern.Total counts it.
func (r *Rules) Patterns() int { return r.patterns }

// rule is a compiled rule.
type rule struct {
	source, output string
	converts       bool
	apply          maker
}

// maker computes a rule's output for a value. The budget pays for patterns.
type maker func(b *pattern.Budget, value json.RawMessage, day Day) (written, error)

// Day selects the rates of a conversion; the zero Day serves rules without conversions.
type Day struct {
	Table *ecb.Table
	At    time.Time
}

// written is a rule's output for a value.
type written struct {
	value json.RawMessage // nil: write nothing
	rate  json.RawMessage // of a conversion
	date  string
}

// Compile checks and compiles rules. Faults have the code schema_validation_failed and name their
// field, such as postProcessRules[2].params.from.
func Compile(list []model.PostProcessRule) (*Rules, fault.List) {
	if len(list) > maxRules {
		return nil, fault.List{fault.Invalid(fault.SchemaValidation, "postProcessRules",
			"at most %d rules are allowed", maxRules)}
	}
	compiled := &Rules{rules: make([]rule, len(list))}
	var faults fault.List
	var patterns pattern.Total
	for i := range list {
		c := checker{field: fmt.Sprintf("postProcessRules[%d]", i), patterns: &patterns}
		compiled.rules[i] = c.compile(&list[i])
		faults = append(faults, c.faults...)
	}
	if len(faults) > 0 {
		return nil, faults
	}
	compiled.patterns = patterns.Size()
	return compiled, nil
}

// Check returns all faults of rules that are being saved: those of Compile, and currencies without
// a rate. It also refuses sources that are no column, or that the rule itself writes. Rules saved
// before may have such sources, and still compile.
func Check(ctx context.Context, list []model.PostProcessRule, rates ecb.Rates) fault.List {
	_, faults := Compile(list)
	for i, r := range list {
		c := checker{field: fmt.Sprintf("postProcessRules[%d]", i)}
		c.checkSource(&r)
		faults = append(faults, c.faults...)
		for _, name := range []string{"from", "to"} {
			code, _ := r.Params[name].(string)
			if Kind(r.Kind) == CurrencyConvert && ecb.IsCode(code) && !rates.Table(ctx).Has(code) {
				faults = append(faults,
					fault.Invalid(fault.SchemaValidation,
						fmt.Sprintf("postProcessRules[%d].params.%s", i, name),
						"the European Central Bank publishes no reference rate of this currency"))
			}
		}
	}
	return faults
}

// checker collects the faults of one rule.
type checker struct {
	field    string
	faults   fault.List
	patterns *pattern.Total
}

func (c *checker) invalid(member, format string, args ...any) {
	c.faults = append(c.faults,
		fault.Invalid(fault.SchemaValidation, c.field+"."+member, format, args...))
}

func (c *checker) compile(r *model.PostProcessRule) rule {
	if r.SourceField == "" || utf8.RuneCountInString(r.SourceField) > maxName {
		c.invalid("sourceField", "a name of 1 to %d characters is needed", maxName)
	}
	if problem := badOutput(r.OutputField, r.SourceField); problem != "" {
		c.invalid("outputField", "%s", problem)
	}
	switch r.OutputType {
	case "", "NUMBER", "TEXT", "BOOLEAN":
	default:
		c.invalid("outputType", "must be one of NUMBER, TEXT, BOOLEAN")
	}
	compiled := rule{source: model.ColumnOf(r.SourceField), output: r.OutputField,
		converts: Kind(r.Kind) == CurrencyConvert}
	params := c.params(r.Params)
	switch Kind(r.Kind) {
	case CurrencyConvert:
		compiled.apply = c.currency(params)
	case EnumMap:
		compiled.apply = c.enum(params)
	case RegexClean:
		compiled.apply = c.regex(params)
	default:
		c.invalid("kind", "must be one of CURRENCY_CONVERT, ENUM_MAP, REGEX_CLEAN")
	}
	return compiled
}

// checkSource checks what only leading underscores hide: they are not part of a column's name.
func (c *checker) checkSource(r *model.PostProcessRule) {
	switch source := model.ColumnOf(r.SourceField); {
	case source == r.SourceField:
	case source == "":
		c.invalid("sourceField", "must have another character than _")
	case source == r.OutputField:
		c.invalid("outputField", "must differ from sourceField, whose leading underscores do not "+
			"count")
	}
}

// badOutput says what is wrong with the name of a column to write, from the column source.
func badOutput(name, source string) string {
	switch {
	case strings.TrimSpace(name) == "" || utf8.RuneCountInString(name) > maxName:
		return fmt.Sprintf("a name of 1 to %d characters is needed", maxName)
	case name == source:
		return "must differ from sourceField"
	case model.IsServerKey(name) || slices.Contains(reserved, name):
		return "the name is reserved for the system"
	case strings.HasPrefix(name, "$"):
		return "names that begin with $ are reserved for the operators of filters"
	case !utf8.ValidString(name) ||
		strings.ContainsFunc(name,
			func(r rune) bool { return utf8text.Hides(r) || r == '"' || r == '\\' }):
		return `a name must not have control characters, " or \: rows could not be filtered by it`
	}
	return ""
}

// params returns the parameters, each as JSON.
func (c *checker) params(given map[string]any) map[string]json.RawMessage {
	document, err := json.Marshal(given)
	if err != nil || len(document) > maxParams {
		c.invalid("params", "must be a JSON object of at most %d bytes", maxParams)
		return nil
	}
	params := map[string]json.RawMessage{}
	if json.Unmarshal(document, &params) != nil || params == nil {
		return map[string]json.RawMessage{}
	}
	return params
}

// known refuses parameters that the kind does not have.
func (c *checker) known(params map[string]json.RawMessage, names ...string) {
	var unknown []string
	for name := range params {
		if !slices.Contains(names, name) {
			unknown = append(unknown, name)
		}
	}
	slices.Sort(unknown)
	for _, name := range unknown {
		c.invalid("params."+name, "the kind has no such parameter")
	}
}

// read reads a parameter; it is false if the parameter is missing or has the wrong type.
func read[T any](c *checker, params map[string]json.RawMessage, name string, into *T,
	what string) bool {
	raw, given := params[name]
	if !given || string(raw) == "null" {
		return false
	}
	if json.Unmarshal(raw, into) != nil {
		c.invalid("params."+name, "must be %s", what)
		return false
	}
	return true
}

// None reports whether there are no rules.
func (r *Rules) None() bool { return r == nil || len(r.rules) == 0 }

// Converts reports whether Apply needs a table of rates.
func (r *Rules) Converts() bool {
	return r != nil && slices.ContainsFunc(r.rules, func(one rule) bool { return one.converts })
}

// Budget of the rules' patterns: some 2.5 s per page, plus 50 µs for each of its rows.
const (
	pageSteps = 50_000_000
	rowSteps  = 1_000
)

// newBudget returns the budget of the patterns for a page with a number of rows.
func newBudget(ctx context.Context, rows int) *pattern.Budget {
	return pattern.NewBudget(ctx, pageSteps+rows*rowSteps)
}

// DayOf returns the Day for conversions at a time. If there are any, it may ask the bank.
func (r *Rules) DayOf(ctx context.Context, rates ecb.Rates, at time.Time) Day {
	if !r.Converts() {
		return Day{}
	}
	return Day{Table: rates.Table(ctx), At: at}
}

// ApplyAll applies the rules to the rows of a page, which may then have at most most bytes
// together. Its errors are those of Apply, row_too_large for too many bytes, and ctx's.
func (r *Rules) ApplyAll(ctx context.Context, rows [][]byte, day Day, most int) ([][]byte, error) {
	if r.None() {
		return rows, nil
	}
	made := make([][]byte, len(rows))
	size, budget := 0, newBudget(ctx, len(rows))
	for i, row := range rows {
		var err error
		if made[i], err = r.Apply(budget, row, day); err != nil {
			return nil, fmt.Errorf("rules of row %d: %w", i, err)
		}
		if size += len(made[i]); size > most {
			return nil, fault.New(fault.PageRowTooLarge,
				"the rows are larger than %d bytes after their rules", most)
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
	return made, nil
}

// Apply applies the rules to a row. Existing columns change in place, and others are appended. The
// budget, shared by all rows of a page, pays for patterns. Its error is coded row_too_large,
// too_costly if the budget ends, or unparsable for anything but a JSON object. Or it is the error
// of the budget's context.
func (r *Rules) Apply(b *pattern.Budget, row []byte, day Day) ([]byte, error) {
	if r.None() {
		return row, nil
	}
	columns, err := parse(row)
	if err != nil {
		return nil, err
	}
	for i := range r.rules {
		rule := &r.rules[i]
		out, err := rule.apply(b, columns.value(rule.source), day)
		if err != nil {
			return nil, err
		}
		if out.value == nil {
			continue
		}
		columns.set(rule.output, out.value)
		if out.rate != nil {
			columns.set(rule.output+rateColumn, out.rate)
			columns.set(rule.output+rateDateColumn, quoted(out.date))
		}
	}
	return columns.document()
}

// Suffixes of the additional columns of a conversion (specification 2.2).
const (
	rateColumn     = "_rate"
	rateDateColumn = "_rateDate"
)

// Columns returns the columns that a rule writes, in order.
func Columns(r *model.PostProcessRule) []string {
	if Kind(r.Kind) != CurrencyConvert {
		return []string{r.OutputField}
	}
	return []string{r.OutputField, r.OutputField + rateColumn, r.OutputField + rateDateColumn}
}

// Preview is a rule's output for one value; Written is false if nothing would be written. Rate and
// RateDate are set for a conversion.
type Preview struct {
	Value    json.RawMessage
	Written  bool
	Rate     json.RawMessage
	RateDate string
}

// Preview applies the only rule to a value. Its error is coded like Apply's.
func (r *Rules) Preview(ctx context.Context, value json.RawMessage, day Day) (Preview, error) {
	if len(r.rules) != 1 {
		return Preview{}, errors.New("rules: a preview is of one rule")
	}
	out, err := r.rules[0].apply(newBudget(ctx, 1), value, day)
	if err == nil && len(out.value) > MaxRowBytes {
		err = tooLarge()
	}
	return Preview{Value: out.value, Written: out.value != nil, Rate: out.rate, RateDate: out.date},
		err
}

// columns are the members of a row in order.
type columns []column

type column struct {
	name  string
	value json.RawMessage
}

var null = json.RawMessage("null")

func parse(row []byte) (columns, error) {
	broken := fault.New(fault.PageUnparsable, "a row is no JSON object")
	tokens := json.NewDecoder(bytes.NewReader(row))
	if open, err := tokens.Token(); err != nil || open != json.Delim('{') {
		return nil, broken
	}
	var c columns
	for tokens.More() {
		name, err := tokens.Token()
		text, isText := name.(string)
		if err != nil || !isText {
			return nil, broken
		}
		var value json.RawMessage
		if tokens.Decode(&value) != nil {
			return nil, broken
		}
		c = append(c, column{text, value})
	}
	return c, nil
}

// value returns a column's value, null if the column is missing.
func (c columns) value(name string) json.RawMessage {
	for i := range c {
		if c[i].name == name {
			return c[i].value
		}
	}
	return null
}

func (c *columns) set(name string, value json.RawMessage) {
	for i := range *c {
		if (*c)[i].name == name {
			(*c)[i].value = value
			return
		}
	}
	*c = append(*c, column{name, value})
}

func (c columns) document() ([]byte, error) {
	size := 2
	for i := range c {
		size += len(c[i].name) + len(c[i].value) + 4
	}
	if size > MaxRowBytes {
		return nil, tooLarge()
	}
	out := append(make([]byte, 0, size), '{')
	for i := range c {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(append(append(out, quoted(c[i].name)...), ':'), c[i].value...)
	}
	return append(out, '}'), nil
}

func tooLarge() error {
	return fault.New(fault.PageRowTooLarge, "a row is larger than %d bytes after its rules",
		MaxRowBytes)
}

// quoted returns text as JSON, without the escapes for HTML.
func quoted(text string) json.RawMessage {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(text) // text always encodes
	return bytes.TrimSuffix(out.Bytes(), []byte("\n"))
}

// textOf returns a value as text: text unchanged, null as "", anything else as its JSON.
func textOf(value json.RawMessage) string {
	var text string
	switch {
	case string(value) == "null":
		return ""
	case len(value) > 0 && value[0] == '"' && json.Unmarshal(value, &text) == nil:
		return text
	}
	return string(value)
}
