package state

import (
	"encoding/binary"
	"fmt"
	"slices"
	"testing"

	"shoal.dev/shoal/pkg/ids"
)

// followedStore is a store whose commands are numbered.
type followedStore struct {
	*Store
	t     testing.TB
	count uint64
	now   int64
}

func newFollowed(t testing.TB) *followedStore {
	return &followedStore{Store: NewStore(), t: t, now: 1}
}

func (s *followedStore) do(change func(*Tx)) {
	s.t.Helper()
	s.count++
	if err := s.Update(s.count, s.now, func(tx *Tx) error { change(tx); return nil }); err != nil {
		s.t.Fatal(err)
	}
}

// putJobs applies one command that changes runs of a customer.
func (s *followedStore) putJobs(customer string, numbers ...uint64) {
	s.t.Helper()
	s.do(func(tx *Tx) {
		for _, n := range numbers {
			tx.PutJob(&Job{ID: numbered(n), Customer: customer, List: numbered(n),
				Items: tx.Index})
		}
	})
}

func numbered(n uint64) (id ids.ID) {
	binary.BigEndian.PutUint64(id[4:], n)
	return id
}

// expect takes the changes and compares them with jobs, in order.
func (s *followedStore) expect(f *Following, jobs ...uint64) {
	s.t.Helper()
	taken := f.TakeChanges()
	var got []uint64
	for _, touch := range taken.Touches {
		got = append(got, binary.BigEndian.Uint64(touch.ID[4:]))
	}
	if taken.Missed || taken.Over || taken.Index != s.count || !slices.Equal(got, jobs) {
		s.t.Fatalf("taken %v at %d (missed %v, over %v), want %v at %d", got, taken.Index,
			taken.Missed, taken.Over, jobs, s.count)
	}
}

func TestFollowersHearOfTheirCustomerAlone(t *testing.T) {
	s := newFollowed(t)
	s.putJobs("alice", 1)
	if s.followers.any.Load() {
		t.Error("something is taken down for nobody")
	}
	alice, bob := s.Follow("alice", 0), s.Follow("bob", 0)
	s.expect(alice) // only changes from now on
	s.putJobs("alice", 2, 3)
	s.putJobs("bob", 4)
	s.putJobs("alice", 2) // again: reported once, at its newest change
	<-alice.Woken()
	s.expect(alice, 3, 2)
	s.expect(alice)
	s.expect(bob, 4)
	s.do(func(tx *Tx) {
		tx.PutWallet(&Wallet{Customer: "alice"})
		tx.PutTopUp(&TopUp{Session: "s", Customer: "alice"})
		tx.PutNotice(&Notice{ID: ids.ID{9}, Customer: "alice"})
		tx.PutWallet(&Wallet{Customer: "carol"})
	})
	want := []Touch{{What: TouchedWallet}, {What: TouchedTopUp, Session: "s"},
		{What: TouchedNotice, ID: ids.ID{9}}}
	if got := alice.TakeChanges().Touches; !slices.Equal(got, want) {
		t.Errorf("taken %v", got)
	}
	s.expect(bob)
	s.do(func(tx *Tx) { tx.RemoveNotice(&Notice{ID: ids.ID{9}, Customer: "alice"}) })
	s.expect(alice) // a removal is not reported
	alice.End()
	alice.End()
	bob.End()
}

// A refused command reports nothing.
func TestFollowersHearOfNothingThatWasRefused(t *testing.T) {
	s := newFollowed(t)
	f := s.Follow("alice", 0)
	defer f.End()
	s.count++
	_ = s.Update(s.count, 1, func(tx *Tx) error {
		tx.PutWallet(&Wallet{Customer: "alice"})
		return fmt.Errorf("refused")
	})
	s.expect(f)
}

// A follower that comes back gets what it missed, while that is kept.
func TestFollowersComeBack(t *testing.T) {
	s := newFollowed(t)
	f := s.Follow("alice", 0)
	s.putJobs("alice", 1)
	s.expect(f, 1)
	stood := s.count
	f.End()
	s.putJobs("alice", 2)
	f = s.Follow("alice", stood)
	s.expect(f, 2)
	f.End()

	s.now += recalledMillis - 1
	s.putJobs("alice", 3)
	f = s.Follow("alice", stood)
	s.expect(f, 2, 3)
	f.End()
	s.now += recalledMillis // nobody came back in time
	s.putJobs("bob", 4)
	if s.followers.any.Load() {
		t.Error("what nobody has come back for is still taken down")
	}
	f = s.Follow("alice", stood)
	if taken := f.TakeChanges(); !taken.Missed || taken.Index != s.count {
		t.Errorf("after a long time: %+v", taken)
	}
	s.putJobs("alice", 5)
	s.expect(f, 5) // then it continues
	f.End()
}

// A follower that was at a replica ahead of this one waits for it.
func TestFollowersWaitForWhatTheyHaveSeen(t *testing.T) {
	s := newFollowed(t)
	s.putJobs("alice", 1)
	f := s.Follow("alice", s.count+2)
	defer f.End()
	s.putJobs("alice", 2)
	select {
	case <-f.Reached():
		t.Fatal("it is not there yet")
	default:
	}
	s.putJobs("alice", 3)
	<-f.Reached()
	s.putJobs("alice", 4)
	s.expect(f, 4)

	early := s.Follow("alice", s.count+1)
	if taken := early.TakeChanges(); !taken.Missed { // it took too early
		t.Errorf("taken %+v", taken)
	}
	s.putJobs("alice", 5)
	s.expect(early, 5)
	early.End()
}

// Replacing a state ends its followings, at once and for late followers.
func TestFollowersOfAReplacedState(t *testing.T) {
	s := newFollowed(t)
	s.putJobs("alice", 1)
	f, ahead := s.Follow("alice", 0), s.Follow("alice", 100)
	<-f.Woken()
	s.Abandon()
	<-f.Woken()
	<-ahead.Reached()
	for _, f := range []*Following{f, ahead, s.Follow("bob", 0)} {
		if taken := f.TakeChanges(); !taken.Over || len(taken.Touches) > 0 {
			t.Errorf("taken %+v", taken)
		}
		f.End()
	}
}

// touch applies one command that touches count things of a customer.
func (s *followedStore) touch(customer string, from, count int) {
	s.t.Helper()
	s.do(func(tx *Tx) {
		for n := from; n < from+count; n++ {
			tx.touches = append(tx.touches, touching{customer: customer,
				touch: Touch{What: TouchedJob, ID: numbered(uint64(n))}})
		}
	})
}

// The changes kept are bounded, per customer and in all. A follower that missed some is told.
func TestTouchesAreBounded(t *testing.T) {
	s := newFollowed(t)
	f, slow := s.Follow("alice", 0), s.Follow("alice", 0)
	s.touch("alice", 0, maxTouchedOfOne)
	if taken := f.TakeChanges(); len(taken.Touches) != maxTouchedOfOne || taken.Missed {
		t.Errorf("taken %d", len(taken.Touches))
	}
	s.touch("alice", maxTouchedOfOne, 1)
	s.expect(f, maxTouchedOfOne)
	if taken := slow.TakeChanges(); !taken.Missed {
		t.Errorf("taken %d of %d", len(taken.Touches), maxTouchedOfOne+1)
	}
	slow.End()

	f.End() // idle from now on: dropped before followed trails
	for n := range maxTouched / maxTouchedOfOne {
		if s.followers.trails["alice"] == nil {
			t.Error("a trail went while there was room")
		}
		name := fmt.Sprint("bob", n)
		defer s.Follow(name, 0).End()
		s.touch(name, 0, maxTouchedOfOne)
	}
	last := s.Follow("carol", 0)
	defer last.End()
	s.touch("carol", 0, maxTouched%maxTouchedOfOne)
	if s.followers.touched != maxTouched || s.followers.trails["alice"] != nil {
		t.Errorf("%d are remembered", s.followers.touched)
	}
	if taken := last.TakeChanges(); taken.Missed {
		t.Error("what fits was missed")
	}
	s.touch("carol", maxTouched, 1)
	if s.followers.touched != maxTouched {
		t.Errorf("%d are remembered", s.followers.touched)
	}
	s.expect(last, maxTouched)
}

// Dropped changes are not counted again: neither when all trails grow at once, nor when an idle
// trail grows itself.
func TestTouchesAreCountedWhileRoomIsMade(t *testing.T) {
	s := newFollowed(t)
	counted := func(when string) {
		t.Helper()
		sum := 0
		for _, trail := range s.followers.trails {
			sum += len(trail.of)
		}
		if s.followers.touched != sum || sum > maxTouched {
			t.Errorf("%s: %d are counted, %d are remembered", when, s.followers.touched, sum)
		}
	}
	fill := func() {
		for n := 0; s.followers.touched < maxTouched; n++ {
			name := fmt.Sprint("bob", n)
			f := s.Follow(name, 0)
			s.touch(name, 0, min(maxTouchedOfOne, maxTouched-s.followers.touched))
			f.End()
		}
	}
	fill()
	s.touch("bob0", maxTouchedOfOne, 1) // the oldest idle trail, and full
	counted("a full trail grew")
	fill()
	s.do(func(tx *Tx) { tx.PutSettings(&Settings{Revision: 1}) })
	counted("all trails grew")
}

// BenchmarkFollowed measures a command that changes a run and a wallet, by the number of open
// streams, each of another customer.
func BenchmarkFollowed(b *testing.B) {
	for _, streams := range []int{0, 10_000} {
		b.Run(fmt.Sprintf("streams=%d", streams), func(b *testing.B) {
			s := newFollowed(b)
			for n := range streams {
				defer s.Follow(fmt.Sprint("customer", n), 0).End()
			}
			b.ReportAllocs()
			for b.Loop() {
				customer := fmt.Sprint("customer", s.count%10_000)
				s.do(func(tx *Tx) {
					tx.PutJob(&Job{ID: numbered(s.count % 10_000), Customer: customer,
						List: numbered(s.count % 10_000)})
					tx.PutWallet(&Wallet{Customer: customer})
				})
			}
		})
	}
}

// Settings concern everybody: every customer's followers hear of them, even those that come back.
func TestSettingsAreFollowedByAll(t *testing.T) {
	s := newFollowed(t)
	s.putJobs("ann", 1)
	ann, bob := s.Follow("ann", 0), s.Follow("bob", 0)
	ann.TakeChanges()
	bob.TakeChanges()
	seen := s.count
	bob.End()
	s.do(func(tx *Tx) { tx.PutSettings(&Settings{Revision: 1, BillingOff: true}) })
	again := s.Follow("bob", seen)
	for name, f := range map[string]*Following{"ann": ann, "bob": again} {
		taken := f.TakeChanges()
		if len(taken.Touches) != 1 || taken.Touches[0].What != TouchedWallet || taken.Missed {
			t.Errorf("%s hears %+v", name, taken)
		}
		f.End()
	}
}
