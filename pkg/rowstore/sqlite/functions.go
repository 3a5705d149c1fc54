package sqlite

import (
	"database/sql/driver"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	lru "github.com/hashicorp/golang-lru"
	"modernc.org/sqlite"

	"shoal.dev/shoal/pkg/filter"
)

// newDriver is a SQLite driver with the functions that filters and sorts need:
//
//	number(json)         the number that a JSON number, or JSON text that is a number, stands for, else NULL
//	sort_key(json)       what a JSON value sorts by: REAL for numbers, TEXT for text, INTEGER for booleans, an empty
//	                     BLOB for arrays and objects, NULL for null
//	contains(text, part), starts_with(text, part), ends_with(text, part)  whatever the case; part is folded already
//	regexp(pattern, text)  RE2
//
// Each is NULL when its text or json is.
func newDriver() (*sqlite.Driver, error) {
	patterns, err := lru.New(compiledPatterns)
	if err != nil {
		return nil, fmt.Errorf("pattern cache: %w", err)
	}
	// Text arguments are views into SQLite's memory: none may be kept, and none is.
	functions := map[string]sqlite.FunctionImpl{
		"number":      {NArgs: 1, Scalar: number},
		"sort_key":    {NArgs: 1, Scalar: sortKey},
		"contains":    {NArgs: 2, Scalar: folded(strings.Contains)},
		"starts_with": {NArgs: 2, Scalar: folded(strings.HasPrefix)},
		"ends_with":   {NArgs: 2, Scalar: folded(strings.HasSuffix)},
		"regexp":      {NArgs: 2, Scalar: matcher(patterns)},
	}
	engine := &sqlite.Driver{}
	for name, function := range functions {
		function.Deterministic, function.VolatileArgs = true, true
		if err := engine.RegisterFunction(name, &function); err != nil {
			return nil, fmt.Errorf("function %s: %w", name, err)
		}
	}
	return engine, nil
}

func number(_ *sqlite.FunctionContext, args []driver.Value) (driver.Value, error) {
	value, ok := args[0].(string)
	if !ok {
		return nil, nil
	}
	if strings.HasPrefix(value, `"`) {
		if value, ok = unquote(value); !ok {
			return nil, nil
		}
	}
	if n, ok := filter.ParseNumber(value); ok {
		return n, nil
	}
	return nil, nil
}

func sortKey(ctx *sqlite.FunctionContext, args []driver.Value) (driver.Value, error) {
	if n, err := number(ctx, args); n != nil || err != nil {
		return n, err
	}
	value, ok := args[0].(string)
	switch {
	case !ok || value == "null":
		return nil, nil
	case value == "true":
		return int64(1), nil
	case value == "false":
		return int64(0), nil
	case strings.HasPrefix(value, `"`):
		if text, ok := unquote(value); ok {
			return text, nil
		}
	}
	return []byte{}, nil
}

// unquote reads a JSON string.
func unquote(quoted string) (text string, ok bool) {
	if inner := quoted[1 : len(quoted)-1]; !strings.Contains(inner, `\`) {
		return inner, true
	}
	err := json.Unmarshal([]byte(quoted), &text)
	return text, err == nil
}

func folded(test func(text, part string) bool) func(*sqlite.FunctionContext, []driver.Value) (driver.Value, error) {
	return func(_ *sqlite.FunctionContext, args []driver.Value) (driver.Value, error) {
		text, ok := args[0].(string)
		part, _ := args[1].(string)
		if !ok {
			return nil, nil
		}
		return test(filter.Fold(text), part), nil
	}
}

func matcher(patterns *lru.Cache) func(*sqlite.FunctionContext, []driver.Value) (driver.Value, error) {
	return func(_ *sqlite.FunctionContext, args []driver.Value) (driver.Value, error) {
		pattern, _ := args[0].(string)
		text, ok := args[1].(string)
		if !ok {
			return nil, nil
		}
		if compiled, ok := patterns.Get(pattern); ok {
			return compiled.(*regexp.Regexp).MatchString(text), nil
		}
		pattern = strings.Clone(pattern)
		compiled, err := regexp.Compile(pattern)
		if err != nil {
			return nil, fmt.Errorf("regexp: %w", err)
		}
		patterns.Add(pattern, compiled)
		return compiled.MatchString(text), nil
	}
}
