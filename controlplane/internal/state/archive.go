package state

import (
	"encoding/binary"
	"slices"

	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
)

// Archive says how far history has left the state. Every run that was closed, and every ledger
// entry that was sealed, by a command up to Upto stands in the row store's archive. Of those the
// state has the newest few of each customer, too.
type Archive struct {
	Upto uint64 `cbor:"1,keyasint"`
}

var archiveTable = define(2, "archive",
	index("id", true, func(*Archive) []any { return []any{"archive"} })).untold()

// ArchivedTo is the index up to which what was sealed stands in the archive; 0: nothing does.
func (v *View) ArchivedTo() uint64 {
	if a := archiveTable.first(v, "id", "archive"); a != nil {
		return a.Upto
	}
	return 0
}

// PutArchive sets it.
func (t *Tx) PutArchive(a *Archive) { archiveTable.put(t, a) }

// Archived says whether a run of the state stands in the archive, too.
func (v *View) Archived(job *Job) bool { return job.Closed && job.Index <= v.ArchivedTo() }

// ArchivedEntry says whether a ledger entry of the state stands in the archive, too. That of a run
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

// ClosedAfter visits the runs that were closed behind an index, in the order in which they were,
// until visit returns false.
func (v *View) ClosedAfter(index uint64, visit func(*Job) bool) {
	jobsTable.from(v, visit, "closed", index+1)
}

// MadeSealedAfter visits the entries that were made, and sealed at once, behind an index, in their
// order, until visit returns false. Those of runs are not among them.
func (v *View) MadeSealedAfter(index uint64, visit func(*Entry) bool) {
	entriesTable.from(v, visit, "sealed", index+1)
}

// Step is part of the way from this state back to the first of its cluster. What a generation did
// up to an index is part of this state.
type Step struct {
	Generation ids.ID `cbor:"1,keyasint"`
	Upto       uint64 `cbor:"2,keyasint"`
}

// generation is that of the cluster's state now. The first is called like the cluster.
func (c *Cluster) generation() ids.ID {
	if c.Generation != nil {
		return c.Generation.ID
	}
	return c.ID
}

// Ancestry is the way back, the generation of now first; Upto is the index of now there.
func (v *View) Ancestry(index uint64) []Step {
	cluster := v.Cluster()
	way := []Step{{cluster.generation(), index}}
	if cluster.Generation != nil {
		way = append(way, cluster.Generation.Ancestors...)
	}
	return way
}

// descendsFrom says whether the state, which is at an index, went on from what a generation was at
// another one.
func (v *View) descendsFrom(generation ids.ID, then, index uint64) bool {
	return slices.ContainsFunc(v.Ancestry(index), func(step Step) bool {
		return step.Generation == generation && then <= step.Upto
	})
}

// GenerationAt is the generation in which an index of this state's past was applied.
func (v *View) GenerationAt(index uint64) ids.ID {
	way := v.Ancestry(index)
	for i := len(way) - 1; i > 0; i-- {
		if index <= way[i].Upto {
			return way[i].Generation
		}
	}
	return way[0].Generation
}

// PastRuns is what the state keeps of a scraper's runs that have left it: at most 100 bytes. Of a
// scraper that was moved it has 14 more, and 13 for each group. Times are Unix milliseconds.
type PastRuns struct {
	// Newest is when the scraper's last run was queued, and State what became of it; 0: that one is
	// in the state.
	Newest int64          `cbor:"1,keyasint,omitempty"`
	State  model.JobState `cbor:"2,keyasint,omitempty"`
	// Shown is the newest run that has rows to show (decision 45), zero: none.
	Shown  ids.ID `cbor:"3,keyasint,omitzero"`
	Queued int64  `cbor:"4,keyasint,omitempty"`
	// Group is where Shown ran, zero: in the group where the scraper is.
	Group ids.ID `cbor:"5,keyasint,omitzero"`
	// Ended is the last ten, the newest first, each as a varint: its rows, and its state in the
	// lowest two bits. 1 is COMPLETED, and 2 is FAILED.
	Ended []byte `cbor:"6,keyasint,omitempty"`
	// Groups are those that the scraper ran in before it was moved, the newest last.
	Groups []ids.ID `cbor:"7,keyasint,omitempty"`
}

// keptEnded is how many of a scraper's last runs are summed up.
const keptEnded = 10

// Add is the record with one of the scraper's runs more, which leaves the state. One whose rows
// were deleted has none to show. nil is that of no run.
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

// show has it show a run of a scraper that is in a group.
func (p *PastRuns) show(job *Job, group ids.ID) {
	p.Shown, p.Queued, p.Group = job.ID, job.Queued, ids.ID{}
	if job.Group != group {
		p.Group = job.Group
	}
}

// Shows says whether the newest run that has rows to show is this one.
func (p *PastRuns) Shows(job ids.ID) bool { return p != nil && p.Shown == job }

// Show is the record that shows another run instead, of a scraper that is in a group; one of the
// zero id: none.
func (p *PastRuns) Show(job *Job, group ids.ID) *PastRuns {
	next := *p
	next.Shown, next.Queued, next.Group = ids.ID{}, 0, ids.ID{}
	if !job.ID.IsZero() {
		next.show(job, group)
	}
	return &next
}

// MaxPastGroups bounds the groups that a scraper's rows are looked for in, beside its own.
const MaxPastGroups = 64

// withGroup is a list of groups that has this one, as its newest.
func withGroup(groups []ids.ID, group ids.ID) []ids.ID {
	groups = append(slices.DeleteFunc(slices.Clone(groups),
		func(known ids.ID) bool { return known == group }), group)
	return groups[max(len(groups)-MaxPastGroups, 0):]
}

// Left is the record of a scraper that leaves a group, in which its runs of before stay.
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

// ShownRun is the newest run that has rows to show, with the group where they lie; the scraper is
// in the given one. nil: there is none.
func (p *PastRuns) ShownRun(group ids.ID) *Job {
	if p == nil || p.Shown.IsZero() {
		return nil
	}
	if !p.Group.IsZero() {
		group = p.Group
	}
	return &Job{ID: p.Shown, Group: group, Queued: p.Queued}
}

// cutVarints is the beginning of a row of varints: so many, or all.
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

// EachEnded visits the last runs, the newest first, until visit returns false. A state of neither
// success nor failure is STOPPED.
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
