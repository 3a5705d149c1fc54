package unit

import (
	"errors"

	"shoal.dev/shoal/fetcher/internal/frontier"
	"shoal.dev/shoal/fetcher/internal/web"
	"shoal.dev/shoal/pkg/curl"
	"shoal.dev/shoal/pkg/extract"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/prelaunch"
	"shoal.dev/shoal/pkg/reading"
	"shoal.dev/shoal/pkg/rules"
)

// recipe is a compiled recipe. It is immutable.
type recipe struct {
	extractor    *extract.Extractor
	err          error         // why there is no extractor
	curl         *curl.Request // nil: pages are fetched by GET
	pager        pager         // nil without pagination
	counts       bool          // its pager makes addresses that the site did not name
	prelaunch    *prelaunch.Rules
	bodyParam    string // the page parameter, if it is in curl's body
	rules        *rules.Rules
	maxPages     uint32
	pace         frontier.Pace // of a host
	ignoreRobots bool
	load         web.Load // pagination within a loaded page
	keepDays     uint8    // days to keep bodies; 0: none are kept
	size         int
}

// compile compiles a customer's recipe. If that panics, the result has no extractor.
func (c *Config) compile(r model.Recipe,
	compile func(model.Recipe) *recipe) (compiled *recipe) {
	panicked := c.Reader.Run(reading.Page{URL: "a scraper's recipe"},
		func() { compiled = compile(r) })
	if panicked != nil {
		return &recipe{err: panicked}
	}
	compiled.pace = c.paceFor(compiled.pace)
	return compiled
}

// errNoRule rejects a recipe that would send a placeholder unfilled.
var errNoRule = errors.New("fetcher: a placeholder of the curl command has no rule")

// paceOf returns the pace that a recipe asks for.
func paceOf(r *model.Recipe) frontier.Pace {
	return frontier.Pace{Rate: r.Politeness.RequestsPerSecond,
		Connections: r.Politeness.Connections}
}

func compileRecipe(r model.Recipe) *recipe {
	compiled := &recipe{
		maxPages: uint32(max(r.Pagination.MaxPages(), 1)), pace: paceOf(&r),
		ignoreRobots: r.Politeness.IgnoreRobots, keepDays: r.KeepDays,
	}
	if p := r.Pagination; p != nil && p.Renders() {
		compiled.load = web.Load{More: true, Click: p.Selector, Max: p.MaxLoads()}
	}
	var faults fault.List
	if r.Curl != "" {
		if compiled.curl, compiled.err = curl.Parse(r.Curl); compiled.err != nil {
			return compiled
		}
	}
	if compiled.prelaunch, faults = prelaunch.Compile(r.Prelaunch); len(faults) > 0 {
		compiled.err = faults
		return compiled
	}
	if compiled.curl != nil && !covered(compiled.curl, compiled.prelaunch) {
		compiled.err = errNoRule
		return compiled
	}
	compiled.pager, compiled.counts = newPager(r.Pagination, compiled.curl), r.Pagination.Counts()
	if _, inBody := bodyParam(r.Pagination, compiled.curl); inBody {
		compiled.bodyParam = r.Pagination.Param
	}
	if compiled.rules, faults = rules.Compile(r.Rules); len(faults) > 0 {
		compiled.err = faults
		return compiled
	}
	compiled.extractor, compiled.err = extract.Compile(r)
	if compiled.err == nil {
		// A rule may compile its pattern twice, see pattern.Replacer.
		compiled.size = compiled.extractor.Patterns() + 2*compiled.rules.Patterns() +
			compiled.prelaunch.Patterns()
		for i := range r.Fields {
			compiled.size += len(r.Fields[i].Selector)
		}
	}
	return compiled
}
