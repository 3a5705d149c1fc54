package clickhouse_test

import (
	"context"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/rowstore"
	"shoal.dev/shoal/pkg/rowstore/clickhouse"
)

// call is a call of a store's method by a role.
type call struct {
	method string
	do     func(ctx context.Context) error
}

// history returns the calls of every role that reads the history, or may judge runs by it.
func (r *rights) history(s *clickhouse.Store) []call {
	return []call{
		{"PastRuns", func(ctx context.Context) error {
			_, err := s.PastRuns(ctx, rowstore.PastQuery{Customer: "c", By: rowstore.ByQueued,
				Limit: 1})
			return err
		}},
		{"CountPast", func(ctx context.Context) error {
			_, err := s.CountPast(ctx, nil, "c", rowstore.PastSpan{})
			return err
		}},
		{"PastEntries", func(ctx context.Context) error {
			_, err := s.PastEntries(ctx, rowstore.PastEntriesQuery{Customers: []string{"c"},
				Limit: 1})
			return err
		}},
		{"Audit", func(ctx context.Context) error {
			_, err := s.Audit(ctx, rowstore.AuditQuery{Limit: 1})
			return err
		}},
		{"EachRecord", func(ctx context.Context) error {
			return s.EachRecord(ctx, r.job.ID, func(rowstore.Record) error { return nil })
		}},
		{"Scan", func(ctx context.Context) error {
			_, _, err := s.Scan(ctx, rowstore.ScanQuery{Scope: rowstore.Scope{Group: r.job.Group},
				Upto: 1, Limit: 1, Bytes: 1})
			return err
		}},
	}
}

// calls returns the calls of a role, in an order in which each finds what earlier ones have made.
func (r *rights) calls(role string, s *clickhouse.Store) []call {
	switch role {
	case "apiserver":
		return slices.Concat(r.apiserver(s), r.history(s), r.sites(s))
	case "ingest":
		return append(r.ingest(s), call{"Horizon", func(ctx context.Context) error {
			_, err := s.Horizon(ctx)
			return err
		}}, call{"Scan", func(ctx context.Context) error {
			_, _, err := s.Scan(ctx, rowstore.ScanQuery{Scope: rowstore.Scope{Group: r.job.Group},
				Upto: 1, Limit: 1, Bytes: 1})
			return err
		}}, call{"LinksAt", func(ctx context.Context) error {
			_, err := s.LinksAt(ctx, readList, []uint32{0})
			return err
		}}, call{"PutLinkStates", func(ctx context.Context) error {
			return s.PutLinkStates(ctx, siteVersion, 1, []rowstore.LinkOutcome{{Hash: 1}})
		}})
	case "billing":
		return append(r.history(s), call{"Recount", func(ctx context.Context) error {
			counted, err := s.Recount(ctx, r.job.ID)
			if err == nil && counted.Delivered != 1 {
				err = fmt.Errorf("counted %+v", counted)
			}
			return err
		}})
	case "controlplane":
		return slices.Concat(r.controlplane(s), r.history(s), r.orphanSites(s))
	}
	return []call{{"Identity", func(ctx context.Context) error {
		_, err := s.Identity(ctx)
		return err
	}}}
}

// The lists of the tests: one that is read, and dropped at the end, and one that ingest drops.
var readList, droppedList = [12]byte{11: 1}, [12]byte{11: 2}

func fill(ctx context.Context, s *clickhouse.Store, list [12]byte) error {
	in, err := s.CreateList(ctx, list)
	if err != nil {
		return err
	}
	if _, err = in.Add(ctx, "http://a.test/", "http://a.test/"); err == nil {
		_, err = in.Finish(ctx)
	}
	return err
}

func (r *rights) apiserver(s *clickhouse.Store) []call {
	scope := rowstore.Scope{Group: r.job.Group}
	return []call{
		{"CreateList", func(ctx context.Context) error { return fill(ctx, s, readList) }},
		{"CreateList", func(ctx context.Context) error { return fill(ctx, s, droppedList) }},
		{"DropList", func(ctx context.Context) error {
			list := r.ids.New()
			if err := fill(ctx, s, list); err != nil {
				return err
			}
			return s.DropList(ctx, list)
		}},
		{"Links", func(ctx context.Context) error {
			links, err := s.Links(ctx, readList, 0, 10)
			r.equal("links", 1, len(links))
			return err
		}},
		{"LinksAt", func(ctx context.Context) error {
			_, err := s.LinksAt(ctx, readList, []uint32{0})
			return err
		}},
		{"EachRecord", func(ctx context.Context) error {
			return s.EachRecord(ctx, r.job.ID, func(rowstore.Record) error { return nil })
		}},
		{"Record", func(ctx context.Context) error {
			_, err := s.Record(ctx, r.job.ID, model.Unit{})
			return err
		}},
		{"LinkErrors", func(ctx context.Context) error {
			_, err := s.LinkErrors(ctx, r.job.ID, nil, 1)
			return err
		}},
		{"PutBatch", func(ctx context.Context) error {
			_, err := s.PutBatch(ctx, rowstore.Batch{Harvest: r.job.ID, Fetch: r.job.ID,
				Rows: [][]byte{[]byte(`{"url":"u"}`)}})
			return err
		}},
		{"Batches", func(ctx context.Context) error {
			docs, _, err := s.Batches(ctx, r.job.ID, 0, 10)
			r.equal("rows of a harvest", 1, len(docs))
			return err
		}},
		{"Entries", func(ctx context.Context) error {
			_, err := s.Entries(ctx, rowstore.EntriesQuery{Harvest: r.job.ID, Limit: 1})
			return err
		}},
		{"CountEntries", func(ctx context.Context) error {
			_, err := s.CountEntries(ctx, r.job.ID, nil)
			return err
		}},
		{"EachCharged", func(ctx context.Context) error {
			return s.EachCharged(ctx, r.job.Scraper, func([]uint64) error { return nil })
		}},
		{"Horizon", func(ctx context.Context) error {
			_, err := s.Horizon(ctx)
			return err
		}},
		{"Rows", func(ctx context.Context) error {
			_, err := s.Rows(ctx, rowstore.RowsQuery{Scope: scope, Limit: 1})
			return err
		}},
		{"Count", func(ctx context.Context) error {
			_, err := s.Count(ctx, scope, nil)
			return err
		}},
		{"CountUpto", func(ctx context.Context) error {
			_, err := s.CountUpto(ctx, []rowstore.Scope{scope}, 1)
			return err
		}},
		{"Order", func(ctx context.Context) error {
			_, err := s.Order(ctx, rowstore.OrderQuery{Scopes: []rowstore.Scope{scope},
				Sort: rowstore.Sort{Field: "a"}, Upto: 1, Limit: 1})
			return err
		}},
		{"At", func(ctx context.Context) error {
			_, _, err := s.At(ctx, []rowstore.Scope{scope}, []int64{1}, 1)
			return err
		}},
		{"Scan", func(ctx context.Context) error {
			_, _, err := s.Scan(ctx, rowstore.ScanQuery{Scope: scope, Upto: 1, Limit: 1})
			return err
		}},
	}
}

func (r *rights) put(ctx context.Context, s *clickhouse.Store) error {
	_, err := s.PutPages(ctx, []rowstore.PageWrite{r.page(0, r.ids.New(), 2)})
	return err
}

func (r *rights) ingest(s *clickhouse.Store) []call {
	scope := rowstore.Scope{Group: r.job.Group}
	erased := *r.cluster
	erased.job.ID = r.ids.New()
	return []call{
		{"PutPages", func(ctx context.Context) error { return r.put(ctx, s) }},
		{"PutPages", func(ctx context.Context) error {
			_, err := s.PutPages(ctx, []rowstore.PageWrite{erased.page(0, r.ids.New(), 2)})
			return err
		}},
		{"Recount", func(ctx context.Context) error {
			_, err := s.Recount(ctx, erased.job.ID)
			return err
		}},
		{"EachRecord", func(ctx context.Context) error {
			return s.EachRecord(ctx, r.job.ID, func(rowstore.Record) error { return nil })
		}},
		{"Expiring", func(ctx context.Context) error {
			_, err := s.Expiring(ctx, time.Unix(1, 0), 1)
			return err
		}},
		{"Holding", func(ctx context.Context) error {
			_, err := s.Holding(ctx, scope, 1)
			return err
		}},
		{"KeepCharged", func(ctx context.Context) error {
			return s.KeepCharged(ctx, rowstore.Kept{Scraper: r.job.Scraper, Job: erased.job.ID,
				Hashes: []uint64{1}})
		}},
		{"Condense", func(ctx context.Context) error {
			return s.Condense(ctx, erased.job.ID, rowstore.Recount{}, time.Unix(1, 0))
		}},
		{"Records", func(ctx context.Context) error {
			_, err := s.Records(ctx, erased.job.ID, []model.Unit{{}})
			return err
		}},
		{"Seal", func(ctx context.Context) error { return s.Seal(ctx, erased.job.ID, nil) }},
		{"Sealed", func(ctx context.Context) error {
			sealed, err := s.Sealed(ctx, erased.job.ID)
			r.equal("sealed", true, sealed)
			return err
		}},
		{"JobsOf", func(ctx context.Context) error {
			_, err := s.JobsOf(ctx, r.job.Customer, [12]byte{}, 10)
			return err
		}},
		{"DeleteJob", func(ctx context.Context) error {
			return s.DeleteJob(ctx, erased.job.ID, false)
		}},
		{"EraseJob", func(ctx context.Context) error { return s.EraseJob(ctx, erased.job.ID) }},
		{"AllLists", func(ctx context.Context) error {
			_, err := s.AllLists(ctx)
			return err
		}},
		{"DropList", func(ctx context.Context) error { return s.DropList(ctx, droppedList) }},
		{"AllHarvests", func(ctx context.Context) error {
			_, err := s.AllHarvests(ctx)
			return err
		}},
		{"DropHarvest", func(ctx context.Context) error { return s.DropHarvest(ctx, r.job.ID) }},
		{"Expire", func(ctx context.Context) error { return s.Expire(ctx, time.Now()) }},
	}
}

func (r *rights) controlplane(s *clickhouse.Store) []call {
	return []call{
		{"Free", func(ctx context.Context) error {
			if bytes, known, err := s.Free(ctx); err != nil || !known || bytes == 0 {
				return fmt.Errorf("%d bytes are free, known: %v: %w", bytes, known, err)
			}
			return nil
		}},
		{"Claim", func(ctx context.Context) error {
			_, err := s.Claim(ctx, "cluster1", false)
			return err
		}},
		{"Advance", s.Advance},
		{"PutPages", func(ctx context.Context) error { return r.put(ctx, s) }},
		{"Links", func(ctx context.Context) error {
			links, err := s.Links(ctx, readList, 0, 10)
			r.equal("links", 1, len(links))
			return err
		}},
		{"LinksAt", func(ctx context.Context) error {
			_, err := s.LinksAt(ctx, readList, []uint32{0})
			return err
		}},
		{"AllLists", func(ctx context.Context) error {
			_, err := s.AllLists(ctx)
			return err
		}},
		{"Records", func(ctx context.Context) error {
			_, err := s.Records(ctx, r.job.ID, []model.Unit{{}})
			return err
		}},
		{"Holding", func(ctx context.Context) error {
			_, err := s.Holding(ctx, rowstore.Scope{Group: r.job.Group}, 1)
			return err
		}},
		{"EachRecord", func(ctx context.Context) error {
			return s.EachRecord(ctx, r.job.ID, func(rowstore.Record) error { return nil })
		}},
		{"Sealed", func(ctx context.Context) error {
			_, err := s.Sealed(ctx, r.job.ID)
			return err
		}},
		{"Seal", func(ctx context.Context) error { return s.Seal(ctx, r.job.ID, nil) }},
		{"JobsSince", func(ctx context.Context) error {
			return s.JobsSince(ctx, 0, func(rowstore.Job) error { return nil })
		}},
		{"DeleteJob", func(ctx context.Context) error { return s.DeleteJob(ctx, r.job.ID, true) }},
		{"DropList", func(ctx context.Context) error { return s.DropList(ctx, readList) }},
		{"PutPast", func(ctx context.Context) error {
			return s.PutPast(ctx, []rowstore.PastRun{{ID: r.ids.New(), Customer: "c"}},
				[]rowstore.PastEntry{{ID: r.ids.New(), Customer: "c"}})
		}},
		{"PastHead", func(ctx context.Context) error {
			_, err := s.PastHead(ctx, nil)
			return err
		}},
		{"ExpirePast", func(ctx context.Context) error { return s.ExpirePast(ctx, time.Now()) }},
		{"PutAudit", func(ctx context.Context) error {
			return s.PutAudit(ctx, []rowstore.AuditRecord{{Number: 1, Body: []byte("{}")}})
		}},
		{"AuditHead", func(ctx context.Context) error {
			_, err := s.AuditHead(ctx, nil)
			return err
		}},
	}
}

// refuse tries what a role must not do.
func (r *rights) refuse(role string, s *clickhouse.Store) {
	r.Helper()
	ctx := r.Context()
	tries := map[string]map[string]func() error{
		"apiserver": {"store pages": func() error { return r.put(ctx, s) }},
		"ingest": {"make lists": func() error { return fill(ctx, s, r.ids.New()) },
			"change the history": func() error {
				return s.PutPast(ctx, []rowstore.PastRun{{ID: r.ids.New()}}, nil)
			}},
		"billing": {"delete a run": func() error { return s.DeleteJob(ctx, r.job.ID, true) }},
		"fetcher": {
			"read lists":   func() error { _, err := s.AllLists(ctx); return err },
			"read records": func() error { _, err := s.Recount(ctx, r.job.ID); return err },
			"store pages":  func() error { return r.put(ctx, s) },
		},
	}
	for what, try := range tries[role] {
		if allowed(r.T, role, try()) {
			r.Errorf("%s may %s", role, what)
		}
	}
}

// TestEveryCallOfARoleIsTried finds the row store's methods that each role's packages call. It
// fails for a method that is not tried with the role's rights.
func TestEveryCallOfARoleIsTried(t *testing.T) {
	r := &rights{cluster: newClusterOf(t, "none")}
	for role, dirs := range map[string][]string{
		"apiserver":    {"apiserver", "controlplane/client"},
		"billing":      {"billing", "controlplane/client"},
		"controlplane": {"controlplane"},
		"fetcher":      {"fetcher"},
		"ingest":       {"ingest"},
	} {
		var tried []string
		for _, call := range r.calls(role, nil) {
			tried = append(tried, call.method)
		}
		called := callsOfTheStore(t, dirs)
		if role != "fetcher" && len(called) == 0 {
			t.Errorf("%s calls nothing: the walk does not see its packages", role)
		}
		for method, where := range called {
			if !slices.Contains(tried, method) {
				t.Errorf("%s calls %s of the row store (%s): try it with its rights", role, method,
					where)
			}
		}
	}
}

// callsOfTheStore returns the store's methods that the code in some folders calls.
func callsOfTheStore(t *testing.T, dirs []string) map[string]string {
	t.Helper()
	methods, called := reflect.TypeFor[rowstore.Store](), map[string]string{}
	look := func(path string, entry fs.DirEntry, err error) error {
		switch name := entry.Name(); {
		case err != nil:
			return err
		case entry.IsDir() && slices.Contains([]string{"simulation", "apitest", "clienttest",
			"historytest", "storetest", "testdata"}, name):
			return filepath.SkipDir
		case !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(node ast.Node) bool {
			selected, ok := node.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			_, is := methods.MethodByName(selected.Sel.Name)
			if is && isStore(selected.X) {
				called[selected.Sel.Name] = path
			}
			return true
		})
		return nil
	}
	for _, dir := range dirs {
		if err := filepath.WalkDir(filepath.Join("../../..", dir), look); err != nil {
			t.Fatal(err)
		}
	}
	return called
}

// isStore reports whether an expression has the name of a row store.
func isStore(e ast.Expr) bool {
	var name string
	switch e := e.(type) {
	case *ast.Ident:
		name = e.Name
	case *ast.SelectorExpr:
		name = e.Sel.Name
	}
	return slices.Contains([]string{"store", "Store", "past", "Archive", "archive"},
		name)
}
