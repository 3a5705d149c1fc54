package node

import (
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"shoal.dev/shoal/pkg/clock"
)

const (
	// MinElectionTimeout is what elections are given on healthy disks, and bounds
	// Config.ElectionTimeout.
	MinElectionTimeout = heartbeatTime
	// MaxElectionTimeout bounds how long an election is given, however slow the disks are. Raft
	// waits once to twice as long.
	MaxElectionTimeout = 30 * time.Second
	// writesPerElection are the synced writes of one election in sequence. These are the
	// candidate's term and its vote, which is two, and then the same of a voter. Raft's up to twice
	// as long leaves room for what has to wait.
	writesPerElection = 6
	// electionMemory is how long half of what elections had to be given is remembered.
	electionMemory = time.Minute
)

// elections says how long the next election of this node is given before it begins anew. At first
// that is the least, which suits healthy disks; where writes are slow it is as long as they need.
// Each election that is lost doubles it.
//
// Raft reads the time as a round begins. A round may be a poll alone, which writes nothing, and
// which nobody wins who reaches no majority. Only rounds in which votes were asked for count.
type elections struct {
	least   time.Duration // above 0
	slowest func() time.Duration
	clock   clock.Clock
	ended   func(outcome string) // counts

	mu    sync.Mutex
	raft  *raft.Raft    // nil until it runs
	grown time.Duration // what lost elections have made of it; 0: none was lost
	since time.Time     // when grown was changed, or halved
	term  uint64        // the newest for which this node has asked for votes
	open  bool          // that election has not ended
}

// How elections end that this node began.
const (
	electionWon  = "won"
	electionLost = "lost"
)

// watch has Raft's changes of state and its calls for votes noted from now on.
func (e *elections) watch(r *raft.Raft) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.raft = r
	r.RegisterObserver(raft.NewObserver(nil, false, func(o *raft.Observation) bool {
		if state, changed := o.Data.(raft.RaftState); changed {
			e.became(state)
		}
		return false
	}))
}

// became notes what this node is in Raft from now on. It is called before a candidate's first round
// begins.
func (e *elections) became(state raft.RaftState) {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch state {
	case raft.Candidate:
		e.set(e.due())
	case raft.Leader:
		e.end(electionWon)
		e.set(e.least) // also how long a hand-over may take
	case raft.Follower:
		e.end(electionLost)
	}
}

// begun notes that votes are asked for. The election before it was lost, unless it was heard to
// have ended.
func (e *elections) begun(term uint64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if term <= e.term {
		return // another voter is asked
	}
	e.term = term
	if e.open {
		e.grown, e.since = min(2*max(e.grown, e.least), MaxElectionTimeout), e.clock.Now()
		e.ended(electionLost)
	}
	e.open = true
	e.set(e.due())
}

func (e *elections) end(outcome string) {
	if e.open || outcome == electionWon { // who votes alone asks nobody
		e.ended(outcome)
	}
	e.open = false
}

// due is how long an election is given now.
func (e *elections) due() time.Duration {
	for e.grown > e.least && e.clock.Now().Sub(e.since) >= electionMemory {
		e.grown, e.since = e.grown/2, e.since.Add(electionMemory)
	}
	return min(max(e.least, e.grown, writesPerElection*e.slowest()),
		max(e.least, MaxElectionTimeout))
}

// set tells Raft. What it has begun it goes on with as it was.
func (e *elections) set(timeout time.Duration) {
	if e.raft == nil {
		return
	}
	settings := e.raft.ReloadableConfig()
	if settings.ElectionTimeout == timeout {
		return
	}
	settings.ElectionTimeout = timeout
	_ = e.raft.ReloadConfig(settings) // the only thing it refuses is a time below the heartbeat's
}

// patience is how long an answer of a voter is of use: as long as a round may take.
func (e *elections) patience() time.Duration {
	e.mu.Lock()
	defer e.mu.Unlock()
	return 2 * e.due()
}

// Voting is a transport that can ask for votes and, before, poll for them. All of ours can.
type Voting interface {
	raft.Transport
	raft.WithPreVote
}

// ballots is a transport that asks for votes as long as they are of use. A voter answers when its
// vote is on disk, which may take longer than streamPatience. Asked again for the same vote, it
// gives the same answer.
type ballots struct {
	Voting
	elections *elections
}

// RequestVote implements raft.Transport.
func (b *ballots) RequestVote(id raft.ServerID, target raft.ServerAddress,
	request *raft.RequestVoteRequest,
	response *raft.RequestVoteResponse) error {
	b.elections.begun(request.Term)
	return b.ask(func() error { return b.Voting.RequestVote(id, target, request, response) })
}

// RequestPreVote implements raft.WithPreVote.
func (b *ballots) RequestPreVote(id raft.ServerID, target raft.ServerAddress,
	request *raft.RequestPreVoteRequest,
	response *raft.RequestPreVoteResponse) error {
	return b.ask(func() error { return b.Voting.RequestPreVote(id, target, request, response) })
}

// ask repeats a call that found no answer. One that was refused, or cut off, ends sooner than that.
func (b *ballots) ask(call func() error) error {
	now, patience := b.elections.clock.Now, b.elections.patience()
	for first := now(); ; {
		began := now()
		err := call()
		if err == nil || now().Sub(began) < streamPatience || now().Sub(first) >= patience {
			return err
		}
	}
}
