package state

import (
	"encoding/binary"
	"slices"

	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
)

// Archive says how far history has left the state. The row store's archive has every run closed,
// and every ledger entry sealed, by a command up to Upto. The state also keeps the newest few of
// each customer.
type Archive struct {
	Upto uint64 `cbor:"1,keyasint"`
}

var archiveTable = define(2, "archive",
	index("id", true, func(*Archive) []any { return []any{"archive"} })).untold()

// ArchivedTo returns the index up to which the archive is complete; 0: it is empty.
func (v *View) ArchivedTo() uint64 {
	if a := archiveTable.first(v, "id", "archive"); a != nil {
		return a.Upto
	}
	return 0
}

// PutArchive sets the record.
func (t *Tx) PutArchive(a *Archive) { archiveTable.put(t, a) }

// Archived reports whether a run of the state is also in the archive.
func (v *View) Archived(job *Job) bool { return job.Closed && job.Index <= v.ArchivedTo() }

// ArchivedEntry reports whether a ledger entry of the state is also in the archive. A run's entry
// is sealed when the run is closed, any other when it is made.
func (v *View) ArchivedEntry(e *Entry) bool {
	if e.Status == EntryOpen {
		return false
	}
	if e.Job.IsZero() {
		return e.Created <= v.ArchivedTo()
	}
	job := v.Job(e.Job)
	return job == nil || v.Archived(job)
}

// ClosedAfter visits the runs closed after an index, in the order of closing, until visit returns
// false.
func (v *View) ClosedAfter(index uint64, visit func(*Job) bool) {
	jobsTable.from(v, visit, "closed", index+1)
}

// MadeSealedAfter visits the entries made after an index and sealed at once, in their order, until
// visit returns false. It leaves out the entries of runs.
func (v *View) MadeSealedAfter(index uint64, visit func(*Entry) bool) {
	entriesTable.from(v, visit, "sealed", index+1)
}

// PastJobs visits a customer's closed jobs in the order of closing, which is that of the archive,
// until visit returns false. It leaves out trials whose outcome is shared.
func (v *View) PastJobs(customer string, visit func(*Job) bool) {
	jobsTable.each(v, false, visit, "past_prefix", customer)
}

// SharedTrials visits the closed trials whose outcome is shared, of all customers, in the order of
// closing, until visit returns false.
func (v *View) SharedTrials(visit func(*Job) bool) {
	jobsTable.each(v, false, visit, "shared_prefix")
}

// PastEntries visits a customer's sealed entries in the order of sealing, until visit returns
// false.
func (v *View) PastEntries(customer string, visit func(*Entry) bool) {
	entriesTable.each(v, false, visit, "past_prefix", customer)
}

// Step is part of the path from this state back to the cluster's first. This state includes what
// the generation did up to Upto.
type Step struct {
	Generation ids.ID `cbor:"1,keyasint"`
	Upto       uint64 `cbor:"2,keyasint"`
}

// generation is the current generation of the state. The first one has the cluster's id.
func (c *Cluster) generation() ids.ID {
	if c.Generation != nil {
		return c.Generation.ID
	}
	return c.ID
}

// Ancestry returns the path back, the current generation first, with index as its Upto.
func (v *View) Ancestry(index uint64) []Step {
	cluster := v.Cluster()
	way := []Step{{cluster.generation(), index}}
	if cluster.Generation != nil {
		way = append(way, cluster.Generation.Ancestors...)
	}
	return way
}

// descendsFrom reports whether this state, at index, continues what a generation was at index then.
func (v *View) descendsFrom(generation ids.ID, then, index uint64) bool {
	return slices.ContainsFunc(v.Ancestry(index), func(step Step) bool {
		return step.Generation == generation && then <= step.Upto
	})
}

// GenerationAt returns the generation that applied an index of this state's past.
func (v *View) GenerationAt(index uint64) ids.ID {
	way := v.Ancestry(index)
	for i := len(way) - 1; i > 0; i-- {
		if index <= way[i].Upto {
			return way[i].Generation
		}
	}
	return way[0].Generation
}

// PastRuns sums up a scraper's runs that have left the state, in at most 100 bytes. For a moved
// scraper it takes 17 more, and 13 for each group. Times are Unix milliseconds.
type PastRuns struct {
	// Newest is when the scraper's last run was queued, and State is how it ended. Newest is 0
	// while the state has that run.
	Newest int64          `cbor:"1,keyasint,omitempty"`
	State  model.JobState `cbor:"2,keyasint,omitempty"`
	// Shown is the newest run that has rows to show (decision 45), zero: none.
	Shown  ids.ID `cbor:"3,keyasint,omitzero"`
	Queued int64  `cbor:"4,keyasint,omitempty"`
	// Group is the group of Shown; zero: the scraper's current group.
	Group ids.ID `cbor:"5,keyasint,omitzero"`
	// Ended holds the last ten runs, newest first. Each is a varint of its rows, with its state in
	// the lowest two bits: 1 is COMPLETED, 2 is FAILED.
	Ended []byte `cbor:"6,keyasint,omitempty"`
	// Groups lists the groups that the scraper was moved out of, the newest last.
	Groups []ids.ID `cbor:"7,keyasint,omitempty"`
}

// keptEnded is the number of runs in PastRuns.Ended.
const keptEnded = 10

// Add returns the record with a run added that leaves the state. A run whose rows were deleted is
// never shown. p may be nil: no run has left yet.
func (p *PastRuns) Add(job *Job, scraper *Scraper, deleted bool) *PastRuns {
	var next PastRuns
	if p != nil {
		next = *p
	}
	if job.ID == scraper.LastJob {
		next.Newest, next.State = job.Queued, job.State
	}
	if !deleted && job.Shows() && (job.Queued > next.Queued ||
		job.Queued == next.Queued && string(job.ID[:]) > string(next.Shown[:])) {
		next.show(job, scraper.Group)
	}
	if job.Group != scraper.Group {
		next.Groups = withGroup(next.Groups, job.Group)
	}
	outcome := uint64(0)
	switch job.State {
	case model.Completed:
		outcome = 1
	case model.Failed:
		outcome = 2
	}
	next.Ended = slices.Concat(binary.AppendUvarint(nil, job.Items<<2|outcome),
		cutVarints(next.Ended, keptEnded-1))
	return &next
}

// show makes job the shown run of a scraper that is in group.
func (p *PastRuns) show(job *Job, group ids.ID) {
	p.Shown, p.Queued, p.Group = job.ID, job.Queued, ids.ID{}
	if job.Group != group {
		p.Group = job.Group
	}
}

// Shows reports whether job is the newest run that has rows to show.
func (p *PastRuns) Shows(job ids.ID) bool { return p != nil && p.Shown == job }

// Show returns a copy that shows another run of a scraper in group. A job with the zero id shows
// none.
func (p *PastRuns) Show(job *Job, group ids.ID) *PastRuns {
	next := *p
	next.Shown, next.Queued, next.Group = ids.ID{}, 0, ids.ID{}
	if !job.ID.IsZero() {
		next.show(job, group)
	}
	return &next
}

// MaxPastGroups bounds the other groups in which a scraper's rows are looked for.
const MaxPastGroups = 64

// withGroup returns the list with group as its newest.
func withGroup(groups []ids.ID, group ids.ID) []ids.ID {
	groups = append(slices.DeleteFunc(slices.Clone(groups),
		func(known ids.ID) bool { return known == group }), group)
	return groups[max(len(groups)-MaxPastGroups, 0):]
}

// Left returns the record of a scraper that leaves a group, where its earlier runs stay.
func (p *PastRuns) Left(group ids.ID) *PastRuns {
	if p == nil {
		return nil
	}
	next := *p
	if next.Group.IsZero() && !next.Shown.IsZero() {
		next.Group = group
	}
	next.Groups = withGroup(next.Groups, group)
	return &next
}

// ShownRun returns the newest run that has rows to show, with the group that holds them. group is
// the scraper's current one. nil: there is no such run.
func (p *PastRuns) ShownRun(group ids.ID) *Job {
	if p == nil || p.Shown.IsZero() {
		return nil
	}
	if !p.Group.IsZero() {
		group = p.Group
	}
	return &Job{ID: p.Shown, Group: group, Queued: p.Queued}
}

// cutVarints returns the first count varints of row, or all if it has fewer.
func cutVarints(row []byte, count int) []byte {
	at := 0
	for range count {
		_, n := binary.Uvarint(row[at:])
		if n <= 0 {
			break
		}
		at += n
	}
	return row[:at]
}

// EachEnded visits the last runs, newest first, until visit returns false. A run that neither
// completed nor failed is STOPPED.
func (p *PastRuns) EachEnded(visit func(state model.JobState, items uint64) bool) {
	if p == nil {
		return
	}
	for row := p.Ended; len(row) > 0; {
		value, n := binary.Uvarint(row)
		if n <= 0 {
			return
		}
		row = row[n:]
		state := model.Stopped
		switch value & 3 {
		case 1:
			state = model.Completed
		case 2:
			state = model.Failed
		}
		if !visit(state, value>>2) {
			return
		}
	}
}
