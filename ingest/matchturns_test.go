package ingest

import (
	"context"
	"fmt"
	"io"
	"slices"
	"testing"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/blobstore"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/work"
)

// opens counts how often files are read.
type opens struct {
	Files
	count int
}

func (o *opens) Open(ctx context.Context, key blobstore.Key, from, length int64) (io.ReadCloser,
	error) {
	o.count++
	return o.Files.Open(ctx, key, from, length)
}

// turning matches groups in turns of two batches each.
type turning struct {
	*uploaded
	kind      work.Kind
	files     *opens
	store     *scans
	catalogue ids.ID
}

// turnedRows is how many rows of a group find their product: some batches, over two runs.
const turnedRows = 3*importedRows + 10

// newTurning makes a group whose rows match. Each tenth row does not, so batches end in the middle
// of what is read at a time.
func newTurning(u *uploaded) *turning {
	u.t.Helper()
	var products []string
	for n := range turnedRows {
		products = append(products, fmt.Sprintf(`{"id":"p%d","title":"thing %d"}`, n, 100_000+n))
	}
	m := &turning{uploaded: u, catalogue: u.products(products...)}
	m.fillGroup()
	m.restart()
	return m
}

// fillGroup adds two runs to the group.
func (m *turning) fillGroup() {
	m.t.Helper()
	var rows []string
	for n := range turnedRows {
		rows = append(rows, fmt.Sprintf(`{"title":"THING %d"}`, 100_000+n))
		if n%10 == 0 {
			rows = append(rows, fmt.Sprintf(`{"title":"nothing like %d"}`, n))
		}
	}
	slices.Reverse(rows)
	m.run(rows[:len(rows)/3]...)
	m.run(rows[len(rows)/3:]...)
}

// restart begins a new process, which knows nothing of earlier turns.
func (m *turning) restart() {
	m.files, m.store = &opens{Files: m.blobs}, &scans{Store: m.uploaded.store}
	m.kind = Match(ImportConfig{Client: m.client, Store: m.store, Files: m.files,
		History: client.NewHistory(m.uploaded.store), IDs: m.ids, Clock: m.clock,
		Dir: m.t.TempDir(), Point: func(name string) {
			if m.point(name); name == "work.match.after_put" {
				m.clock.Advance(turnTime)
			}
		}})
}

// turn makes one turn of a match; died says that point panicked.
func (m *turning) turn(job ids.ID) (end work.End, died bool) {
	m.t.Helper()
	defer func() {
		if cause := recover(); cause != nil {
			died = true
			m.t.Log("died of ", cause)
		}
	}()
	for {
		outcome, err := m.kind.Step(m.t.Context(), work.Item{ID: job, Kind: work.Match,
			Customer: "ann", Args: m.catalogue[:], Progress: m.noted[job]})
		if err != nil {
			m.t.Error(err)
		}
		if len(outcome.Progress) == 0 || len(m.noted[job]) > 0 {
			return outcome.End, false
		}
		if m.noted == nil {
			m.noted = map[ids.ID][]byte{}
		}
		m.noted[job] = outcome.Progress
	}
}

// wantMatched requires that each row of the group has its product, once.
func (m *turning) wantMatched(job ids.ID) {
	m.t.Helper()
	if job := m.client.View().Job(job); job.State != model.Completed || job.Items != turnedRows {
		m.t.Fatalf("%+v", job)
	}
	found := m.matched()
	for n := range turnedRows {
		want := fmt.Sprintf("p%d, brand_model", n)
		if got := found[fmt.Sprintf("THING %d", 100_000+n)]; got != want {
			m.t.Fatalf("%d: %q, want %q", n, got, want)
		}
	}
}

// A node reads each row of a match once, and the catalogue once, however many turns the matches
// take that use it.
func TestMatchesTakeTurns(t *testing.T) {
	onEachStore(t, func(t *testing.T, start starter) {
		m := newTurning(start(t))
		groups := []ids.ID{m.group, m.ids.New()}
		begun := []client.BegunResult{m.beginMatch(m.catalogue)}
		m.group = groups[1]
		m.client.Must(t, client.PutGroup{Create: true, ID: m.group, Customer: "ann", Name: "h"})
		m.fillGroup()
		begun = append(begun, m.beginMatch(m.catalogue))
		turns := 0
		for ended := 0; ended < 2 && turns < 20; turns++ {
			if end, _ := m.turn(begun[turns%2].Job); end == work.Ended {
				ended++
			}
		}
		if turns != 6 {
			t.Errorf("%d turns, each of two batches, or one that ends a match", turns)
		}
		if want := 2 * (turnedRows + turnedRows/10); m.store.rows != want {
			t.Errorf("%d rows were read of %d", m.store.rows, want)
		}
		if m.files.count != 1 {
			t.Errorf("the catalogue was read %d times", m.files.count)
		}
		for n := range groups {
			m.group = groups[n]
			m.wantMatched(begun[n].Job)
		}
	})
}

// Whichever turn of a match is killed, and wherever, the next process ends it with each row once.
func TestMatchIsKilledInItsTurns(t *testing.T) {
	onEachStore(t, func(t *testing.T, start starter) {
		for _, at := range []string{"work.match.before_put", "work.match.after_put"} {
			for nth := range 4 {
				t.Run(fmt.Sprint(at, nth), func(t *testing.T) {
					m := newTurning(start(t))
					begun := m.beginMatch(m.catalogue)
					seen := 0
					m.point = func(name string) {
						if name == at {
							if seen++; seen > nth {
								m.point = func(string) {}
								panic(name)
							}
						}
					}
					deaths := 0
					for turns, end := 0, work.Rested; end != work.Ended && turns < 20; turns++ {
						var died bool
						if end, died = m.turn(begun.Job); died {
							deaths++
							m.restart()
						}
					}
					if deaths != 1 {
						t.Errorf("it died %d times", deaths)
					}
					m.wantMatched(begun.Job)
					m.turn(begun.Job) // late
					m.wantMatched(begun.Job)
				})
			}
		}
	})
}

// Whatever ends a match between two turns, nothing is left of it, neither rows nor the index.
func TestMatchesEndBetweenTurns(t *testing.T) {
	for name, c := range map[string]struct {
		ends    func(m *turning, begun client.BegunResult)
		state   model.JobState
		message string
	}{
		"the catalogue is replaced": {func(m *turning, _ client.BegunResult) {
			m.products(`{"id":"x","title":"quite another thing"}`)
		}, model.Failed, noCatalogue},
		"a run is removed": {func(m *turning, _ client.BegunResult) {
			last := m.client.View().Scraper(m.scraper).LastJob
			if err := m.uploaded.store.DeleteJob(m.t.Context(), last, false); err != nil {
				m.t.Error(err)
			}
		}, model.Failed, notSame},
		"a run is replaced": {func(m *turning, _ client.BegunResult) {
			m.steps(m.send("title", "jsonl", `{"title":"another"}`))
		}, model.Failed, notSame},
		"it is stopped": {func(m *turning, begun client.BegunResult) {
			m.client.Must(m.t, client.StopRun{Customer: "ann", Scraper: begun.Scraper})
		}, model.Stopped, ""},
	} {
		t.Run(name, func(t *testing.T) {
			m := newTurning(newUploaded(t))
			begun := m.beginMatch(m.catalogue)
			if end, _ := m.turn(begun.Job); end != work.Rested {
				t.Fatalf("%v", end)
			}
			c.ends(m, begun)
			if end, _ := m.turn(begun.Job); end != work.Ended {
				t.Errorf("%v", end)
			}
			if job := m.client.View().Job(begun.Job); job.State != c.state ||
				job.Message != c.message {
				t.Errorf("%+v", job)
			}
			m.remove()
			sum, err := m.uploaded.store.Recount(t.Context(), begun.Job)
			if err != nil || sum.Items != 0 {
				t.Errorf("%d rows are left, %v", sum.Items, err)
			}
		})
	}
}

// A match whose next turn comes late, or after a shortage of disks, begins anew. So its index does
// not stay on a node that it has left.
func TestMatchesAreForgotten(t *testing.T) {
	for name, passes := range map[string]func(m *turning, job ids.ID){
		"late": func(m *turning, _ ids.ID) {
			m.clock.Advance(keptFor)
			if !m.kind.Ready() {
				m.t.Error("it is not ready")
			}
		},
		"short": func(m *turning, job ids.ID) {
			m.client.Short(m.t, "voter-1")
			m.turn(job)
			m.client.Short(m.t, "")
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := newTurning(newUploaded(t))
			begun := m.beginMatch(m.catalogue)
			m.turn(begun.Job)
			passes(m, begun.Job)
			for turns, end := 0, work.Rested; end != work.Ended && turns < 9; turns++ {
				end, _ = m.turn(begun.Job)
			}
			if m.files.count != 2 {
				t.Errorf("the catalogue was read %d times", m.files.count)
			}
			m.wantMatched(begun.Job)
		})
	}
}
