package node

import (
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"shoal.dev/shoal/pkg/clock"
)

const (
	// MinElectionTimeout is the election timeout on healthy disks, and the lower bound of
	// Config.ElectionTimeout.
	MinElectionTimeout = heartbeatTime
	// MaxElectionTimeout bounds the election timeout, however slow the disks are. Raft waits
	// between one and two timeouts.
	MaxElectionTimeout = 30 * time.Second
	// writesPerElection allows for the synced writes of one election, in sequence: the candidate's
	// term and its vote (two writes), then the same on a voter. Raft waits up to twice the timeout,
	// which leaves room for queueing.
	writesPerElection = 6
	// electionMemory is how long it takes until a grown election timeout is halved.
	electionMemory = time.Minute
)

// elections sets how long this node's next election may take before it starts again. At first that
// is the minimum, which suits healthy disks. Slow writes raise it to what they need, and each lost
// election doubles it.
//
// Raft reads the timeout as a round begins. A round may be only a poll, which writes nothing and
// which nobody wins without a majority. Only rounds that ask for votes count.
type elections struct {
	least   time.Duration // above 0
	slowest func() time.Duration
	clock   clock.Clock
	ended   func(outcome string) // counts

	mu    sync.Mutex
	raft  *raft.Raft    // nil until it runs
	grown time.Duration // the timeout that lost elections have led to; 0: none was lost
	since time.Time     // when grown was last changed or halved
	term  uint64        // the newest term for which this node asked for votes
	open  bool          // that election has not ended yet
}

// How this node's elections end.
const (
	electionWon  = "won"
	electionLost = "lost"
)

// watch starts to observe Raft's changes of state.
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

// became records this node's new state in Raft. Raft calls it before a candidate's first round
// begins.
func (e *elections) became(state raft.RaftState) {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch state {
	case raft.Candidate:
		e.set(e.due())
	case raft.Leader:
		e.end(electionWon)
		e.set(e.least) // it also bounds a hand-over of leadership
	case raft.Follower:
		e.end(electionLost)
	}
}

// begun records that votes are asked for. If the election before it is still open, it was lost.
func (e *elections) begun(term uint64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if term <= e.term {
		return // the same election asks another voter
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
	if e.open || outcome == electionWon { // a node that votes alone asks nobody
		e.ended(outcome)
	}
	e.open = false
}

// due returns the timeout of an election that starts now.
func (e *elections) due() time.Duration {
	for e.grown > e.least && e.clock.Now().Sub(e.since) >= electionMemory {
		e.grown, e.since = e.grown/2, e.since.Add(electionMemory)
	}
	return min(max(e.least, e.grown, writesPerElection*e.slowest()),
		max(e.least, MaxElectionTimeout))
}

// set sets Raft's election timeout. A round that has begun keeps its own.
func (e *elections) set(timeout time.Duration) {
	if e.raft == nil {
		return
	}
	settings := e.raft.ReloadableConfig()
	if settings.ElectionTimeout == timeout {
		return
	}
	settings.ElectionTimeout = timeout
	_ = e.raft.ReloadConfig(settings) // it refuses only a timeout below the heartbeat's
}

// patience returns how long a voter's answer is useful: as long as a round may last.
func (e *elections) patience() time.Duration {
	e.mu.Lock()
	defer e.mu.Unlock()
	return 2 * e.due()
}

// Voting is a transport that can ask for votes and for pre-votes. All of our transports can.
type Voting interface {
	raft.Transport
	raft.WithPreVote
}

// ballots is a transport that asks for a vote for as long as it is useful. A voter answers once its
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

// ask repeats a call that timed out, and no call that was refused or cut off.
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
