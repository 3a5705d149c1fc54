package state

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"sync"
	"testing"

	"shoal.dev/shoal/pkg/ids"
)

// TestReadersBesideTheWriter runs readers of every kind while commands change all that they read.
// The jobs of each command share one number. A reader that sees two numbers, or not all jobs, did
// not read one consistent state.
func TestReadersBesideTheWriter(t *testing.T) {
	const jobs, commands = 70, 100
	s := NewStore()
	put := func(tx *Tx, number int64) error {
		for n := range jobs {
			tx.PutJob(&Job{ID: jobNumber(uint64(n)), Scraper: ids.ID{1}, Queued: number,
				List: jobNumber(uint64(number)<<32 | uint64(n))})
		}
		return nil
	}
	if err := s.Update(1, 1, func(tx *Tx) error {
		tx.PutNode(&Node{Name: "of no other command"})
		return put(tx, 0)
	}); err != nil {
		t.Fatal(err)
	}
	var readers sync.WaitGroup
	over := make(chan struct{})
	for _, read := range []func() error{
		func() error { return readAll(s.View(), jobs) },
		func() error { return readBack(s.View(), jobs) },
		func() error { return readPoints(s.View()) },
		func() error { return s.Snapshot().Write(io.Discard) },
		func() error { return restored(s, jobs) },
	} {
		readers.Go(func() {
			for ended := false; !ended; {
				select {
				case <-over:
					ended = true // once more, when nothing changes any more
				default:
				}
				if err := read(); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	readers.Go(func() { // woken by each command, sees it or a later one
		for last := int64(-1); last < commands; {
			job, changed := s.View().WatchJob(jobNumber(jobs - 1))
			if job.Queued < last {
				t.Errorf("after command %d comes %d", last, job.Queued)
				return
			}
			if last = job.Queued; last < commands {
				<-changed
			}
		}
	})
	for number := range int64(commands) {
		if err := s.Update(uint64(number+2), 1, func(tx *Tx) error {
			if number%3 == 2 { // removed and added within one command: never missing
				for _, job := range jobsTable.all(&tx.View, "id_prefix") {
					tx.RemoveJob(job)
				}
			}
			return put(tx, number+1)
		}); err != nil {
			t.Fatal(err)
		}
		if err := s.Update(uint64(number+2), 1, func(tx *Tx) error {
			if err := put(tx, -1); err != nil {
				return err
			}
			return errRefused
		}); err == nil {
			t.Fatal("a refused command is not refused")
		}
	}
	close(over)
	readers.Wait()
}

func jobNumber(n uint64) (id ids.ID) {
	binary.BigEndian.PutUint64(id[4:], n)
	return id
}

// readAll reads the jobs in the order of their ids, and each one by its list.
func readAll(v *View, want int) error {
	var all []*Job
	for _, job := range jobsTable.all(v, "id_prefix") {
		all = append(all, job)
		if by := v.JobOfList(job.List); by != job {
			return fmt.Errorf("list %s has job %v, want %v", job.List, by, job)
		}
	}
	return ofOneMoment(all, want)
}

// readBack reads the jobs in the reverse order of their lists.
func readBack(v *View, want int) error {
	var all []*Job
	rows := jobsTable.backwards(v, "list_prefix")
	for next := rows.next(); next != nil; next = rows.next() {
		all = append(all, next.(*Job))
	}
	return ofOneMoment(all, want)
}

// readPoints compares two jobs and the counts with each other.
func readPoints(v *View) error {
	first, other := v.Job(jobNumber(0)), v.Job(jobNumber(7))
	if first.Queued != other.Queued {
		return fmt.Errorf("one job is of command %d, another of %d", first.Queued, other.Queued)
	}
	if n := len(v.Nodes()); n != 1 {
		return fmt.Errorf("there are %d nodes, want one", n)
	}
	if n := v.Counts()["jobs"]; n != len(jobsTable.all(v, "list_prefix")) {
		return fmt.Errorf("%d jobs are counted, and others are listed", n)
	}
	return nil
}

// restored restores a snapshot that is written while commands continue.
func restored(s *Store, want int) error {
	var written bytes.Buffer
	if err := s.Snapshot().Write(&written); err != nil {
		return err
	}
	back, err := Restore(&written)
	if err != nil {
		return err
	}
	return readAll(back.View(), want)
}

func ofOneMoment(all []*Job, want int) error {
	if len(all) != want {
		return fmt.Errorf("there are %d jobs, want %d", len(all), want)
	}
	for _, job := range all {
		if job.Queued != all[0].Queued {
			return fmt.Errorf("commands %d and %d are seen at once", all[0].Queued, job.Queued)
		}
	}
	return nil
}
