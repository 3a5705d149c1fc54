package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// A stage is a part of the work on a page. A profile sample belongs to the stage of its innermost
// frame in our packages, whichever libraries that frame calls. If no such frame is on the stack, it
// belongs to the library's stage.
type stage struct {
	name      string
	packages  []string // prefixes of function names
	libraries []string
}

const (
	collectorStage = "garbage collection"
	runtimeStage   = "Go's scheduler and network poller"
	otherStage     = "other"
)

func stages() []stage {
	const module = "shoal.dev/shoal/"
	return []stage{
		{name: "fetch: one HTTP exchange",
			packages: []string{module + "pkg/egress", module + "fetcher/internal/web"}},
		{name: "extract: page to row", packages: []string{module + "pkg/extract"}},
		{name: "fetcher: frontier, chains, outbox", packages: []string{module + "fetcher"}},
		{name: "log: records encoded, decoded, queued", packages: []string{module + "pkg/stream"}},
		{name: "ingest: batches", packages: []string{module + "ingest"}},
		{name: "store: rows, page records, lists in SQLite",
			packages:  []string{module + "pkg/rowstore"},
			libraries: []string{"modernc.org/", "database/sql."}},
		{name: "settle: receipts to commands", packages: []string{module + "billing"}},
		{name: "control plane: dispatch, commands, Raft",
			packages:  []string{module + "controlplane"},
			libraries: []string{"github.com/hashicorp/", "go.etcd.io/bbolt", "github.com/boltdb/"}},
		{name: "API: list intake, progress", packages: []string{module + "apiserver"},
			libraries: []string{"github.com/valyala/fasthttp"}},
		{name: "the bench's own part", packages: []string{"main."}},
	}
}

// collectors are frames that only the garbage collector has: it is its own stage, whoever causes
// it.
var collectors = []string{"runtime.gcBgMarkWorker", "runtime.gcAssistAlloc", "runtime.bgsweep",
	"runtime.bgscavenge",
	"runtime.gcStart", "runtime.gcMarkTermination", "runtime.deductSweepCredit"}

// checking is on the stack of the check after the measurement, which reads all rows.
const checking = "shoal.dev/shoal/apiserver/api/data."

// stageOf returns the stage of one sample, whose frames are ordered from innermost to outermost; ""
// if it is not measured.
func stageOf(frames []string) string {
	if slices.ContainsFunc(frames, func(f string) bool { return strings.HasPrefix(f, checking) }) {
		return ""
	}
	if slices.ContainsFunc(frames, func(f string) bool { return slices.Contains(collectors, f) }) {
		return collectorStage
	}
	all := stages()
	find := func(prefixes func(stage) []string) string {
		for _, frame := range frames {
			for _, s := range all {
				if slices.ContainsFunc(prefixes(s),
					func(p string) bool { return strings.HasPrefix(frame, p) }) {
					return s.name
				}
			}
		}
		return ""
	}
	if name := find(func(s stage) []string { return s.packages }); name != "" {
		return name
	}
	if name := find(func(s stage) []string { return s.libraries }); name != "" {
		return name
	}
	if len(frames) > 0 && strings.HasPrefix(frames[len(frames)-1], "runtime.") {
		return runtimeStage
	}
	return otherStage
}

// stageShare is how much of a contender's processor time a stage took.
type stageShare struct {
	Contender string        `json:"contender"`
	Stage     string        `json:"stage"`
	CPU       time.Duration `json:"cpuNanos"`
	Share     float64       `json:"share"`  // of all samples of the profile
	Micros    float64       `json:"micros"` // per page, of the contender's median CPU per page
}

// addStages sums up the profiles of the last round.
func (r *report) addStages(ctx context.Context, o options) error {
	if o.profiles == "" {
		return nil
	}
	for _, name := range slices.DeleteFunc(slices.Clone(o.contenders),
		func(name string) bool { return !ours(name) }) {
		path := filepath.Join(o.profiles, name+".prof")
		traces, err := newCommand(ctx, "go", "tool", "pprof", "-traces", "-unit=ns", path).Output()
		if err != nil {
			return fmt.Errorf("profile %s: %w", path, err)
		}
		times, err := sumTraces(traces)
		if err != nil {
			return fmt.Errorf("profile %s: %w", path, err)
		}
		r.Stages = append(r.Stages,
			shares(name, times, 1e6/r.of(name, sample.perCPUSecond).median)...)
	}
	return nil
}

// shares lists a contender's stages, largest first.
func shares(name string, times map[string]time.Duration, micros float64) []stageShare {
	var total time.Duration
	for _, t := range times {
		total += t
	}
	var list []stageShare
	for s, t := range times {
		share := float64(t) / float64(total)
		list = append(list, stageShare{Contender: name, Stage: s, CPU: t, Share: share,
			Micros: share * micros})
	}
	slices.SortFunc(list, func(a, b stageShare) int { return int(b.CPU - a.CPU) })
	return list
}

// sumTraces parses the output of `go tool pprof -traces`. It has samples between dashed lines: a
// time with the innermost frame, and the outer frames below. A short profile may have none.
func sumTraces(text []byte) (map[string]time.Duration, error) {
	times := map[string]time.Duration{}
	var frames []string
	var spent time.Duration
	flush := func() {
		if s := stageOf(frames); len(frames) > 0 && s != "" {
			times[s] += spent
		}
		frames, spent = nil, 0
	}
	lines := bufio.NewScanner(bytes.NewReader(text))
	begun := false
	for lines.Scan() {
		line := lines.Text()
		switch fields := strings.Fields(line); {
		case strings.HasPrefix(line, "-----------+"):
			flush()
			begun = true
		case !begun || len(fields) == 0:
		case len(frames) == 0 && len(fields) >= 2:
			var err error
			if spent, err = time.ParseDuration(fields[0]); err != nil {
				return nil, fmt.Errorf("a sample begins %q", line)
			}
			frames = append(frames, fields[1])
		default:
			frames = append(frames, fields[0])
		}
	}
	flush()
	if !begun {
		return nil, fmt.Errorf("this is no list of samples: %.100q", text)
	}
	return times, lines.Err()
}

// stageTable formats the stages for people.
func stageTable(list []stageShare) string {
	var b strings.Builder
	b.WriteString("Where the time goes, by profiles of the last round (the whole loop's with " +
		"its start and warm-up):\n\n" +
		"| contender | stage | share | CPU a page |\n|---|---|---|---|\n")
	for _, s := range list {
		fmt.Fprintf(&b, "| %s | %s | %.1f%% | %.1f µs |\n", s.Contender, s.Stage, 100*s.Share,
			s.Micros)
	}
	return b.String()
}
