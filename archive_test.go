package house_test

import (
	"go/ast"
	"testing"
)

// stateReads are the methods of a view that find runs and ledger entries which may leave the state,
// with the number of their arguments.
var stateReads = map[string]int{"Job": 1, "Entry": 1, "JobOfList": 1, "WatchJob": 1,
	"ScraperJobs": 2, "CustomerJobs": 2, "Entries": 2, "PastJobs": 2, "PastEntries": 2,
	"ClosedAfter": 2, "MadeSealedAfter": 2, "SharedTrials": 1}

// stateReaders are the files that use them, and why the archive lacks nothing that they need.
var stateReaders = map[string]string{
	"controlplane/client/history.go":              "it joins both",
	"controlplane/client/ledger.go":               "it joins both",
	"controlplane/client/linkstates.go":           "it asks the history for what is gone",
	"controlplane/internal/archive/archive.go":    "it reads what goes to the archive",
	"controlplane/internal/dispatch/applied.go":   "runs that begin or are open",
	"controlplane/internal/leadership/closing.go": "runs that are open",
	"controlplane/internal/leadership/metrics.go": "a run that was just closed",
	"controlplane/internal/leadership/orphans.go": "it asks the history for what is gone",
	"controlplane/internal/leadership/samples.go": "what is not archived yet",
	"controlplane/internal/steps/leader.go":       "runs that are open",
	"controlplane/internal/steps/recover.go":      "runs that are open",
	"fetcher/internal/hold/hold.go":               "runs that are open",
	"fetcher/internal/unit/turn.go":               "runs that are open, and their entries",
	"ingest/batch.go":                             "runs that are open",
	"ingest/imports.go":                           "uploads that are open",
	"ingest/reextract.go":                         "runs that are open",
	"ingest/remove.go":                            "whether a run is open",
	"apiserver/api/data/data.go":                  "the scraper says what has left",
	"apiserver/api/data/retained.go":              "the index of the archive covers what has left",
	"apiserver/api/data/snapshot.go":              "runs that are open",
	"apiserver/api/data/merge.go":                 "it asks the history for what is gone",
	"apiserver/api/jobs/stream.go":                "it asks the history for what is gone",
	"apiserver/api/runs/stop.go":                  "whether a run is open",
	"apiserver/api/scrapers/scrapers.go":          "the scraper says what has left",
	"apiserver/internal/trial/trial.go":           "it asks the history for what is gone",
}

// TestTheStateIsNotAllOfHistory: runs and entries leave the state soon after their end. Whoever
// looks for one there alone would take it for nobody's, so client.History is what others ask.
func TestTheStateIsNotAllOfHistory(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range sources(t) {
		if s.test || forTests(s.dir) || !under(s.dir, roles...) ||
			under(s.dir, "controlplane/internal/state", "controlplane/internal/fsm") {
			continue
		}
		ast.Inspect(s.file, func(node ast.Node) bool {
			call, ok := node.(*ast.CallExpr)
			if !ok || !readsState(call) {
				return true
			}
			seen[s.path] = true
			if stateReaders[s.path] == "" {
				t.Errorf("%s calls %s of the state: client.History also knows what has left it",
					s.path, call.Fun.(*ast.SelectorExpr).Sel.Name)
			}
			return true
		})
	}
	for path := range stateReaders {
		if !seen[path] {
			t.Errorf("%s reads no runs or entries of the state: take it off the list", path)
		}
	}
}

// readsState says whether a call reads the state. The history's methods of the same names have a
// context.
func readsState(call *ast.CallExpr) bool {
	called, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || len(call.Args) == 0 || stateReads[called.Sel.Name] != len(call.Args) {
		return false
	}
	first, ok := call.Args[0].(*ast.Ident)
	return !ok || first.Name != "ctx"
}
