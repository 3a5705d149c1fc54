package ingest

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/rowstore"
	"shoal.dev/shoal/pkg/work"
)

// protect protects the group's uploads.
func (u *uploaded) protect() {
	u.t.Helper()
	u.client.Must(u.t, client.ProtectGroup{Group: u.group})
}

// send begins an upload whose rows are added by a key column.
func (u *uploaded) send(key, format, file string) ids.ID {
	u.t.Helper()
	begin := client.BeginImport{Job: u.ids.New(), Customer: "ann", Scraper: u.scraper,
		Format: format, Bytes: int64(len(file)), Key: key}
	if _, err := u.blobs.Put(u.t.Context(), keyOf("ann", begin.Job),
		strings.NewReader(file)); err != nil {
		u.t.Fatal(err)
	}
	u.client.Must(u.t, begin)
	u.clock.Advance(time.Second)
	return begin.Job
}

// steps takes an upload to its end, even if point panics.
func (u *uploaded) steps(job ids.ID) *client.Job {
	u.t.Helper()
	var progress []byte
	for range 20 {
		outcome, died := u.stepOn(job, progress)
		if died {
			u.point = func(string) {}
			continue
		}
		if outcome.End == work.Ended {
			return u.client.View().Job(job)
		}
		progress = outcome.Progress
	}
	u.t.Fatal("it does not end")
	return nil
}

func (u *uploaded) stepOn(job ids.ID, progress []byte) (outcome work.Outcome, died bool) {
	u.t.Helper()
	defer func() {
		if value := recover(); value != nil {
			died = true
		}
	}()
	kind := Import(ImportConfig{Client: u.client, Store: u.store,
		History: client.NewHistory(u.store), Files: u.blobs, IDs: u.ids, Clock: u.clock,
		Dir: u.t.TempDir(), Point: u.point})
	outcome, err := kind.Step(u.t.Context(), work.Item{ID: job, Customer: "ann",
		Progress: progress})
	if err != nil {
		u.t.Fatal(err)
	}
	return outcome, false
}

// documents are the scraper's rows in their order.
func (u *uploaded) documents() (rows, rowIDs []string) {
	u.t.Helper()
	scope := client.Shown(u.client.View(), u.group, u.scraper)
	for q := (rowstore.ScanQuery{Scope: scope, Upto: 1 << 62, Limit: 1000}); q.After < q.Upto; {
		docs, last, err := u.store.Scan(u.t.Context(), q)
		if err != nil {
			u.t.Fatal(err)
		}
		for _, doc := range docs {
			text, _, _ := strings.Cut(string(doc), `,"_scrapedAt"`)
			rows = append(rows, text+"}")
			id, err := textOf(doc, "_rowId")
			if err != nil {
				u.t.Fatal(err)
			}
			rowIDs = append(rowIDs, id)
		}
		q.After = last
	}
	return rows, rowIDs
}

// Each sentence of specification 4.9 about rows of protected uploads is a case here.
func TestProtectedUploads(t *testing.T) {
	const before = "EAN,a,b\n1,x,\n2,,y\n,keyless,\n"
	stored := []string{`{"EAN":"1","a":"x"}`, `{"EAN":"2","b":"y"}`, `{"a":"keyless"}`}
	for name, c := range map[string]struct {
		format, file string
		want         []string
		ends         string // end of the message, "": it is complete
	}{
		"a new key adds a row": {"csv", "EAN,a\n3,z\n",
			append(slices.Clone(stored), `{"EAN":"3","a":"z"}`), ""},
		"an existing key gets empty cells filled": {"csv", "EAN,b\n1,new\n",
			[]string{`{"EAN":"1","a":"x","b":"new"}`, stored[1], stored[2]}, ""},
		"an existing key gets new columns": {"csv", "EAN,c\n2,new\n",
			[]string{stored[0], `{"EAN":"2","b":"y","c":"new"}`, stored[2]}, ""},
		"existing values are never changed": {"csv", "EAN,a\n1,other\n", stored, ""},
		"rows absent from the file stay":    {"csv", "EAN,a\n1,x\n", stored, ""},
		"an empty key is skipped":           {"csv", "EAN,a\n,other\n1,x\n", stored, ""},
		"every key is empty":                {"csv", "EAN,a\n,other\n \t,x\n", stored, ""},
		"every key is empty in json lines":  {"jsonl", `{"EAN":null,"a":"new"}`, stored, ""},
		"a duplicate key uses the first row": {"csv", "EAN,a\n3,first\n3,second\n",
			append(slices.Clone(stored), `{"EAN":"3","a":"first"}`), ""},
		"a duplicate key fills from the first row": {"csv", "EAN,b,c\n1,,\n1,late,late\n", stored,
			""},
		"keys are compared after trimming": {"csv", "EAN,b\n\" 1 \",new\n",
			[]string{`{"EAN":"1","a":"x","b":"new"}`, stored[1], stored[2]}, ""},
		"keys are compared exactly": {"csv", "EAN,b\n01,new\n",
			append(slices.Clone(stored), `{"EAN":"01","b":"new"}`), ""},
		"json lines": {"jsonl", `{"EAN":2,"a":"new"}`,
			[]string{stored[0], `{"EAN":"2","b":"y","a":"new"}`, stored[2]}, ""},
		"the key column is missing":  {"csv", "ean,a\n1,x\n", stored, "(KEY_COLUMN_MISSING)"},
		"no line has the key column": {"jsonl", `{"ean":"1"}`, stored, "(KEY_COLUMN_MISSING)"},
		"the file has no rows": {"csv", "EAN,a\n", stored,
			"the file has no data rows"},
		"the file cannot be read": {"jsonl", "{", stored, ""},
	} {
		t.Run(name, func(t *testing.T) {
			onEachStore(t, func(t *testing.T, start starter) {
				u := start(t)
				first := u.whole("csv", before)
				_, ids := u.documents()
				u.protect()
				job := u.steps(u.send("EAN", c.format, c.file))
				got, now := u.documents()
				if !slices.Equal(got, c.want) {
					t.Errorf("%s", got)
				}
				if !slices.Equal(now[:len(ids)], ids) {
					t.Errorf("ids were %v and are %v", ids, now)
				}
				failed := job.State == model.Failed
				if !strings.HasSuffix(job.Message, c.ends) ||
					failed != (c.ends != "" || name == "the file cannot be read") {
					t.Errorf("%+v", job)
				}
				protection := u.client.View().Scraper(u.scraper).Protection
				if protection.Key != "EAN" || !failed && (protection.Run != job.ID ||
					job.Items != uint64(len(c.want))) {
					t.Errorf("%+v after %v and %s", protection, job, first)
				}
			})
		})
	}
}

// moves moves the scraper to a new group.
func (u *uploaded) moves() {
	u.t.Helper()
	spec := u.client.View().Scraper(u.scraper).Spec
	u.group = u.ids.New()
	u.client.Must(u.t, client.PutGroup{Create: true, ID: u.group, Customer: "ann",
		Name: u.group.String()})
	u.client.Must(u.t, client.PutScraper{ID: u.scraper, Customer: "ann", Group: u.group,
		Spec: spec})
}

// Files add to each other wherever the scraper moves in between, and whenever it is protected. The
// group of the newest file then has all rows, and the groups before have none.
func TestProtectedUploadsFollowAMove(t *testing.T) {
	for name, moves := range map[string][]string{
		"protected, then moved":      {"protected"},
		"moved, then protected":      {"stored"},
		"moved while a file waits":   {"sent"},
		"moved again and again":      {"stored", "protected", "sent"},
		"never moved":                nil,
		"moved before the last file": {"added"},
	} {
		t.Run(name, func(t *testing.T) {
			onEachStore(t, func(t *testing.T, start starter) {
				u := start(t)
				groups := []ids.ID{u.group}
				at := func(point string) {
					if slices.Contains(moves, point) {
						u.moves()
						groups = append(groups, u.group)
					}
				}
				u.whole("csv", "EAN,a,b\n1,x,\n2,y,\n")
				_, before := u.documents()
				at("stored")
				u.protect()
				at("protected")
				view := u.client.View()
				if key, err := client.KeyColumnOf(t.Context(), u.store, view,
					view.Scraper(u.scraper), ""); err != nil || key != "EAN" {
					t.Errorf("the key column is %q, %v", key, err)
				}
				job := u.send("EAN", "csv", "EAN,b\n1,new\n")
				at("sent")
				if ended := u.steps(job); ended.State != model.Completed {
					t.Fatalf("%+v", ended)
				}
				at("added")
				last := u.send("EAN", "csv", "EAN,a\n1,other\n3,z\n")
				if ended := u.steps(last); ended.State != model.Completed || ended.Items != 3 {
					t.Fatalf("%+v", ended)
				}
				got, now := u.documents()
				if want := []string{`{"EAN":"1","a":"x","b":"new"}`, `{"EAN":"2","a":"y"}`,
					`{"EAN":"3","a":"z"}`}; !slices.Equal(got, want) ||
					!slices.Equal(now[:2], before) {
					t.Errorf("%s, ids %v, were %v", got, now, before)
				}
				for range 2 { // before and after the hidden rows are removed
					for _, u.group = range groups[:len(groups)-1] {
						if got, _ := u.documents(); len(got) > 0 {
							t.Errorf("an earlier group has %s", got)
						}
					}
					u.remove()
				}
			})
		})
	}
}

// A moved scraper's file also replaces the rows in the group before, in the same step.
func TestUploadsReplaceAfterAMove(t *testing.T) {
	onEachStore(t, func(t *testing.T, start starter) {
		u := start(t)
		u.whole("csv", "a\n1\n")
		from := u.group
		u.moves()
		if got := u.read(client.Shown(u.client.View(), from, u.scraper)); len(got) != 1 {
			t.Errorf("before the next file: %v", got)
		}
		u.whole("csv", "a\n2\n")
		if got := u.read(client.Shown(u.client.View(), from, u.scraper)); len(got) > 0 {
			t.Errorf("the group before still shows %v", got)
		}
		if got := u.shown(); !slices.Equal(got, []string{"2"}) {
			t.Errorf("%v", got)
		}
	})
}

// A file is added once, wherever its import is killed. Several files add up, and a stopped one
// leaves the rows as they were.
func TestProtectedUploadIsKilled(t *testing.T) {
	onEachStore(t, func(t *testing.T, start starter) {
		for _, at := range []string{"work.import.before_put", "work.import.after_put",
			"work.import.after_seal", "work.import.after_end"} {
			for nth := range 2 {
				t.Run(fmt.Sprint(at, nth), func(t *testing.T) {
					u := start(t)
					var file strings.Builder
					for n := range importedRows + 10 {
						fmt.Fprintf(&file, `{"id":"%d","a":""}`+"\n", n)
					}
					u.whole("jsonl", file.String())
					u.protect()
					file.Reset()
					for n := range importedRows + 10 {
						fmt.Fprintf(&file, `{"id":"%d","a":"1"}`+"\n", n+10)
					}
					job, seen := u.send("id", "jsonl", file.String()), 0
					u.point = func(name string) {
						if name == at {
							if seen++; seen > nth {
								panic(name)
							}
						}
					}
					if ended := u.steps(job); ended.State != model.Completed {
						t.Fatalf("%+v", ended)
					}
					u.steps(job) // late
					rows, rowIDs := u.documents()
					slices.Sort(rowIDs)
					if len(rows) != importedRows+20 || rows[10] != `{"id":"10","a":"1"}` ||
						rows[importedRows+19] != fmt.Sprintf(`{"id":"%d","a":"1"}`,
							importedRows+19) || len(slices.Compact(rowIDs)) != len(rows) {
						t.Errorf("%d rows, %s", len(rows), rows[:11])
					}
					stopped := u.send("", "jsonl", `{"id":"new"}`)
					if _, died := u.stepOn(stopped, nil); died {
						t.Fatal("it died")
					}
					u.client.Must(t, client.StopRun{Customer: "ann", Scraper: u.scraper})
					u.steps(stopped)
					u.steps(u.send("other", "jsonl", `{"id":"last","other":"x"}`))
					if rows, _ := u.documents(); len(rows) != importedRows+21 {
						t.Errorf("%d rows in the end", len(rows))
					}
				})
			}
		}
	})
}

// If a scraper is protected while its file waits, it gets its key column then; without one the file
// fails. Once rows are being replaced, they are added, unless all are stored already.
func TestProtectedWhileQueued(t *testing.T) {
	onEachStore(t, func(t *testing.T, start starter) {
		for name, c := range map[string]struct {
			before, file, asked, ends string
			rows                      int
		}{
			"found":       {`{"Barcode":"1"}`, `{"Barcode":"2"}`, "", "", 2},
			"asked":       {`{"k":"1"}`, `{"k":"2"}`, "k", "", 2},
			"none":        {`{"k":"1"}`, `{"k":"2"}`, "", "(KEY_COLUMN_REQUIRED)", 1},
			"not a field": {`{"k":"1"}`, `{"k":"2"}`, "z", "(KEY_COLUMN_REQUIRED)", 1},
		} {
			t.Run(name, func(t *testing.T) {
				u := start(t)
				u.whole("jsonl", c.before)
				begin := client.BeginImport{Job: u.ids.New(), Customer: "ann", Scraper: u.scraper,
					Format: "jsonl", Bytes: 1, Asked: c.asked}
				if _, err := u.blobs.Put(t.Context(), keyOf("ann", begin.Job),
					strings.NewReader(c.file)); err != nil {
					t.Fatal(err)
				}
				u.client.Must(t, begin)
				u.clock.Advance(time.Second)
				u.protect()
				job := u.steps(begin.Job)
				rows, _ := u.documents()
				if !strings.HasSuffix(job.Message, c.ends) || len(rows) != c.rows {
					t.Errorf("%v of %+v", rows, job)
				}
			})
		}
		for _, at := range []string{"work.import.after_put", "work.import.after_seal"} {
			u := start(t)
			u.whole("jsonl", `{"id":"1"}`)
			job := u.upload("jsonl", `{"id":"1","a":"x"}`+"\n"+`{"id":"2"}`)
			u.point = func(name string) {
				if name == at {
					u.point = func(string) {}
					u.protect()
					panic(name)
				}
			}
			ended := u.steps(job)
			rows, _ := u.documents()
			if at == "work.import.after_seal" { // it takes nothing more
				if ended.State != model.Failed || len(rows) != 1 {
					t.Errorf("%+v with %s", ended, rows)
				}
			} else if want := []string{`{"id":"1","a":"x"}`, `{"id":"2"}`}; ended.Items != 2 ||
				ended.State != model.Completed || !slices.Equal(rows, want) {
				t.Errorf("%+v with %s", ended, rows)
			}
		}
	})
}

// An owner that replaces rows is paused while the scraper is protected, and another owner adds the
// rows. Whatever the first does later, none of its rows is shown, and the existing rows stay.
func TestProtectedWhileAnOwnerIsPaused(t *testing.T) {
	onEachStore(t, func(t *testing.T, start starter) {
		for _, at := range []string{"work.import.before_put", "work.import.after_put",
			"work.import.after_seal"} {
			for _, other := range []string{"work.import.before_put", "work.import.after_put",
				"work.import.after_seal", ""} {
				u := start(t)
				u.whole("jsonl", `{"id":"1"}`)
				job := u.upload("jsonl", `{"id":"1","a":"x"}`+"\n"+`{"id":"2"}`)
				u.point = func(name string) {
					if name != at {
						return
					}
					u.point = func(name string) {
						if name == other {
							panic(name)
						}
					}
					u.protect()
					var progress []byte
					for range 3 {
						outcome, _ := u.stepOn(job, progress)
						progress = outcome.Progress
					}
					u.point = func(string) {}
				}
				paused := Import(ImportConfig{Client: u.client, Store: u.store,
					History: client.NewHistory(u.store), Files: u.blobs, IDs: u.ids, Clock: u.clock,
					Dir: t.TempDir(), Point: func(name string) { u.point(name) }})
				_, err := paused.Step(t.Context(), work.Item{ID: job, Customer: "ann"})
				if err != nil && !errors.Is(err, errKeyed) {
					t.Fatal(err)
				}
				ended := u.steps(job)
				rows, _ := u.documents()
				want := []string{`{"id":"1"}`}
				if ended.State == model.Completed {
					want = []string{`{"id":"1","a":"x"}`, `{"id":"2"}`}
				}
				if !ended.Ended() || !slices.Equal(rows, want) {
					t.Errorf("%s, %s: %+v with %s", at, other, ended, rows)
				}
			}
		}
	})
}

// A node sorts an added file once, however many turns it takes: later turns read no stored rows.
func TestProtectedUploadsSortOnce(t *testing.T) {
	u := newUploaded(t)
	var file strings.Builder
	for n := range 3*importedRows + 10 {
		fmt.Fprintf(&file, `{"id":"%06d","a":""}`+"\n", n)
	}
	u.whole("jsonl", file.String())
	u.protect()
	file.Reset()
	for n := range 3*importedRows + 10 {
		fmt.Fprintf(&file, `{"id":"%06d","a":"1"}`+"\n", n+10)
	}
	job, store, dir := u.send("id", "jsonl", file.String()), &scans{Store: u.store}, t.TempDir()
	kind := Import(ImportConfig{Client: u.client, Store: store,
		History: client.NewHistory(u.store), Files: u.blobs, IDs: u.ids, Clock: u.clock,
		Dir: dir, Point: func(name string) {
			if name == "work.import.after_put" {
				u.clock.Advance(turnTime)
			}
		}})
	var progress []byte
	sorted, turns := 0, 0
	for end := work.Rested; end == work.Rested && turns < 9; turns++ {
		outcome, err := kind.Step(t.Context(), work.Item{ID: job, Kind: work.Import,
			Customer: "ann", Progress: progress})
		if err != nil {
			t.Fatal(err)
		}
		if end, progress = outcome.End, outcome.Progress; turns == 1 { // the first notes the runs
			sorted = store.count
		}
		if names, err := os.ReadDir(dir); err != nil || len(names) > 0 {
			t.Errorf("turn %d leaves %v, %v", turns, names, err)
		}
	}
	if turns != 4 || sorted == 0 || store.count != sorted {
		t.Errorf("%d turns, %d reads of rows, %d up to the first that stores", turns, store.count,
			sorted)
	}
	rows, rowIDs := u.documents()
	slices.Sort(rowIDs)
	if len(rows) != 3*importedRows+20 || len(slices.Compact(rowIDs)) != len(rows) ||
		rows[9] != `{"id":"000009"}` || rows[10] != `{"id":"000010","a":"1"}` {
		t.Errorf("%d rows, %s", len(rows), rows[:11])
	}
}

// The noted runs stay noted while the import rests. Otherwise deleting one of them in the meantime
// would leave batches in two orders.
func TestProtectedUploadsRestWithTheirNote(t *testing.T) {
	u := newUploaded(t)
	u.whole("jsonl", `{"id":"1"}`)
	u.protect()
	job := u.send("id", "jsonl", `{"id":"2"}`)
	noted, _ := u.stepOn(job, nil)
	if len(noted.Progress) == 0 {
		t.Fatal("nothing is noted")
	}
	u.client.Short(t, "voter-1")
	if rests, _ := u.stepOn(job, noted.Progress); rests.End != work.Rested ||
		!bytes.Equal(rests.Progress, noted.Progress) {
		t.Errorf("while disks are short: %+v, noted %q", rests, noted.Progress)
	}
	u.client.Short(t, "")
	if _, died := u.stepOn(job, noted.Progress); died ||
		u.client.View().Job(job).State != model.Completed {
		t.Errorf("%+v", u.client.View().Job(job))
	}
}
