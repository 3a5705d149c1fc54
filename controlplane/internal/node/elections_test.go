package node

import (
	"errors"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"shoal.dev/shoal/pkg/clock"
)

// disk is the slowest write, set by a test.
type disk struct{ slowest time.Duration }

func newElections() (*elections, *disk, *clock.Manual, map[string]int) {
	d, now, ended := &disk{}, clock.NewManual(time.Unix(1e9, 0)), map[string]int{}
	return &elections{least: time.Second, slowest: func() time.Duration { return d.slowest },
		clock: now,
		ended: func(outcome string) { ended[outcome]++ }}, d, now, ended
}

func TestElectionTimes(t *testing.T) {
	t.Parallel()
	e, d, now, ended := newElections()
	due := func(want time.Duration, when string) {
		t.Helper()
		if got := e.due(); got != want {
			t.Errorf("%s an election has %v, want %v", when, got, want)
		}
	}
	due(time.Second, "at first")
	e.became(raft.Candidate)
	e.begun(1)
	e.begun(1) // asks the other voter
	due(time.Second, "once votes were asked for,")
	e.begun(2)
	due(2*time.Second, "after a loss")
	e.begun(3)
	e.begun(4)
	due(8*time.Second, "after three losses")
	e.became(raft.Leader)
	if ended[electionLost] != 3 || ended[electionWon] != 1 {
		t.Errorf("elections ended so: %v", ended)
	}
	now.Advance(electionMemory)
	due(4*time.Second, "a while after a success")
	now.Advance(10 * electionMemory)
	due(time.Second, "long after a success")
	d.slowest = 2 * time.Second
	due(12*time.Second, "on a disk with slow writes")
	d.slowest = time.Minute
	due(MaxElectionTimeout, "on a disk that stands still")
	e.became(raft.Follower)
	e.begun(5)
	e.became(raft.Follower)
	if ended[electionLost] != 4 {
		t.Errorf("elections ended so: %v", ended)
	}
}

// A round that never asks for votes says nothing about disks: the voters are gone, or another node
// leads.
func TestPollsDoNotCount(t *testing.T) {
	t.Parallel()
	e, _, _, ended := newElections()
	for range 10 {
		e.became(raft.Candidate)
		e.became(raft.Follower)
	}
	if e.due() != time.Second || len(ended) != 0 {
		t.Errorf("an election has %v, and they ended so: %v", e.due(), ended)
	}
}

// voter answers requests for votes when a test says so.
type voter struct {
	Voting
	answer func() error
}

func (v voter) RequestVote(raft.ServerID, raft.ServerAddress, *raft.RequestVoteRequest,
	*raft.RequestVoteResponse) error {
	return v.answer()
}

func (v voter) RequestPreVote(raft.ServerID, raft.ServerAddress, *raft.RequestPreVoteRequest,
	*raft.RequestPreVoteResponse) error {
	return v.answer()
}

func TestVotesAreAskedForAsLongAsTheyAreOfUse(t *testing.T) {
	t.Parallel()
	errSilent := errors.New("no answer")
	for _, c := range []struct {
		what    string
		slowest time.Duration // write
		takes   time.Duration // each call
		calls   int
	}{
		{"refused at once, on a slow disk", 2 * time.Second, time.Millisecond, 1},
		{"silent, on a healthy disk", 0, streamPatience, 1},
		{"silent, on a slow disk", 2 * time.Second, streamPatience, 8}, // for 24 s
	} {
		e, d, now, _ := newElections()
		d.slowest = c.slowest
		calls := 0
		b := &ballots{elections: e, Voting: voter{answer: func() error {
			calls++
			now.Advance(c.takes)
			return errSilent
		}}}
		for what, err := range map[string]error{
			"vote": b.RequestVote("v", "a", &raft.RequestVoteRequest{Term: 1},
				&raft.RequestVoteResponse{}),
			"poll": b.RequestPreVote("v", "a", &raft.RequestPreVoteRequest{},
				&raft.RequestPreVoteResponse{}),
		} {
			if !errors.Is(err, errSilent) {
				t.Errorf("%s: %s: %v", c.what, what, err)
			}
		}
		if calls != 2*c.calls {
			t.Errorf("%s: vote and poll take %d calls, want %d each", c.what, calls, c.calls)
		}
	}
}

func TestSlowWritesAreForgotten(t *testing.T) {
	t.Parallel()
	now := clock.NewManual(time.Unix(1e9, 0))
	takes := 2 * time.Second
	var seconds []float64
	s := &store{clock: now, before: func() { now.Advance(takes) },
		took: func(s float64) { seconds = append(seconds, s) }}
	nothing := func() error { return nil }
	_ = s.write(nothing)
	takes = time.Millisecond
	_ = s.write(nothing)
	if s.slowest() != 2*time.Second || len(seconds) != 2 || seconds[0] != 2 {
		t.Errorf("the slowest write took %v, all of them %v", s.slowest(), seconds)
	}
	now.Advance(writesRemembered)
	if s.slowest() != 2*time.Second {
		t.Errorf("after a minute the slowest write took %v", s.slowest())
	}
	now.Advance(writesRemembered)
	if s.slowest() != 0 {
		t.Errorf("after two minutes the slowest write took %v", s.slowest())
	}
}
