package kafka

import (
	"context"
	"slices"
	"time"

	"shoal.dev/shoal/pkg/stream"
)

// Limits of Lag.
const (
	tailTimeout = 5 * time.Second
	lagTimeout  = 2 * time.Second
	lagKept     = time.Second // how old the answer may be
)

// lag is the last known lag of a topic.
type lag struct {
	records int64
	at      time.Time
	// closed when the look-up under way has ended; nil: there is none
	asking chan struct{}
}

func (l *Log) isClosed() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.closed
}

// Watch makes Lag count a group even if this process has no member of it.
func (l *Log) Watch(topic stream.Topic, group string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.group(topic, group)
}

// Lag asks the brokers at most once a second. Otherwise, or if they do not answer within two
// seconds, it returns its last result. It counts the tails of this process, and the groups that
// this process is or was a member of, or watches. Groups count as a whole, including members in
// other processes.
func (l *Log) Lag(topic stream.Topic) int64 {
	if int(topic) >= len(l.lags) {
		return 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	state := &l.lags[topic]
	if state.asking != nil {
		asking := state.asking
		l.mu.Unlock()
		<-asking
		l.mu.Lock()
		return state.records
	}
	now := l.config.Clock.Now()
	if l.closed || !state.at.IsZero() && now.Sub(state.at) < lagKept {
		return state.records
	}
	state.asking = make(chan struct{})
	var tails []*tailReader
	for _, tail := range l.tailOf[topic] {
		tails = append(tails, tail)
	}
	var groups []string
	for _, group := range l.groups[topic] {
		groups = append(groups, group.name)
	}
	l.mu.Unlock()
	records, err := l.measure(topic, tails, groups)
	l.mu.Lock()
	if err == nil {
		state.records = records
	} else if !l.closed {
		l.config.Logger.Warn("kafka: cannot measure the lag", "topic", topic, "error", err)
	}
	state.at = l.config.Clock.Now()
	close(state.asking)
	state.asking = nil
	return state.records
}

// measure adds up the records that the tails and groups have not read yet.
func (l *Log) measure(topic stream.Topic, tails []*tailReader, groups []string) (int64, error) {
	ctx, cancel := context.WithTimeout(l.ctx, lagTimeout)
	defer cancel()
	var total int64
	at := make([]int64, len(tails))
	partitions := make([]int, len(tails))
	for i, tail := range tails {
		tail.poller.mu.Lock()
		partitions[i], at[i] = tail.owned[0].partition, tail.owned[0].given
		tail.poller.mu.Unlock()
	}
	ends, err := l.cluster.offsets(ctx, topic, afterLast, partitions)
	if err != nil {
		return 0, err
	}
	for i := range tails {
		if at[i] < 0 { // it starts over
			at[i] = 0
		}
		total += max(ends[i]-at[i], 0)
	}
	if len(groups) == 0 {
		return total, nil
	}
	all := make([]int, l.config.Partitions)
	for i := range all {
		all[i] = i
	}
	if ends, err = l.cluster.offsets(ctx, topic, afterLast, all); err != nil {
		return 0, err
	}
	for _, group := range groups {
		committed, err := l.cluster.committed(ctx, topic, group, all)
		if err != nil {
			return 0, err
		}
		var firsts []int64
		if slices.Min(committed) < 0 {
			if firsts, err = l.cluster.offsets(ctx, topic, firstRecord, all); err != nil {
				return 0, err
			}
		}
		for i, offset := range committed {
			if offset < 0 {
				offset = firsts[i]
			}
			total += max(ends[i]-offset, 0)
		}
	}
	return total, nil
}
