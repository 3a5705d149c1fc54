package sqlite

import (
	"context"
	"database/sql/driver"
	"fmt"
	"sync"

	"modernc.org/sqlite"

	"shoal.dev/shoal/pkg/filter"
	"shoal.dev/shoal/pkg/pattern"
	"shoal.dev/shoal/pkg/rowstore/internal/document"
)

// patterns holds the patterns of running queries. SQLite passes their numbers to matches().
type patterns struct {
	mu   sync.Mutex
	last int64
	used map[int64]priced
}

// priced is a pattern with the budget of its query, which runs on one goroutine.
type priced struct {
	pattern *pattern.Pattern
	budget  *pattern.Budget
}

func newPatterns() *patterns { return &patterns{used: map[int64]priced{}} }

// beginQuery begins a query, which ends with the context at the latest. The caller must call end.
func (p *patterns) beginQuery(ctx context.Context) *matching {
	return &matching{patterns: p, budget: filter.NewBudget(ctx)}
}

// matching holds the patterns of one query.
type matching struct {
	patterns *patterns
	budget   *pattern.Budget
	numbers  []int64
}

// number assigns a number to a pattern for as long as the query runs.
func (m *matching) number(of *pattern.Pattern) int64 {
	m.patterns.mu.Lock()
	defer m.patterns.mu.Unlock()
	m.patterns.last++
	m.patterns.used[m.patterns.last] = priced{of, m.budget}
	m.numbers = append(m.numbers, m.patterns.last)
	return m.patterns.last
}

func (m *matching) end() {
	m.patterns.mu.Lock()
	defer m.patterns.mu.Unlock()
	for _, number := range m.numbers {
		delete(m.patterns.used, number)
	}
}

// failure returns a query's error: SQLite passes on only the text of a function's error.
func (m *matching) failure(err error) error {
	if ended := filter.ErrOf(m.budget); err != nil && ended != nil {
		return ended
	}
	return err
}

// match implements the SQL function matches.
func (p *patterns) match(_ *sqlite.FunctionContext, args []driver.Value) (driver.Value, error) {
	doc, _ := args[0].(string)
	name, _ := args[1].(string)
	number, _ := args[2].(int64)
	p.mu.Lock()
	of, known := p.used[number]
	p.mu.Unlock()
	if !known {
		return nil, fmt.Errorf("no pattern has the number %d", number)
	}
	value, _ := document.Find(doc, name)
	text, ok := document.Text(value)
	found := ok && of.pattern.Match(of.budget, text)
	return found, of.budget.Err()
}
