package kafka

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	segmentio "github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol"
	"github.com/segmentio/kafka-go/protocol/consumer"
	"github.com/segmentio/kafka-go/protocol/syncgroup"

	"shoal.dev/shoal/pkg/stream"
	"shoal.dev/shoal/pkg/wake"
)

// Timing of groups.
const (
	// a member's arrival or departure is noticed by the others within this time
	heartbeatEvery = 500 * time.Millisecond
	sessionTimeout = 10 * time.Second // a member silent for this long is dead
	// a member that does not rejoin within this time is left out
	rebalanceTimeout = 10 * time.Second
	leaveTimeout     = 2 * time.Second
)

// Identifiers of the group protocol for the coordinator. protocolName identifies the algorithm of
// deal, which all members of a group must share.
const (
	protocolType = "consumer"
	protocolName = "shoal"
)

// membership is a group as this process knows it: its name at the brokers and its members that are
// open here.
type membership struct {
	name    string
	members map[*member]bool
}

// member is one member of a consumer group. Its goroutine joins, sends heartbeats and rejoins when
// the coordinator says so. A partition that it keeps from one generation to the next continues
// where it was. A new partition begins at the committed position.
type member struct {
	reader
	log     *Log
	group   *membership
	cancel  context.CancelFunc
	running sync.WaitGroup
	closing sync.Once

	// The poller's mu guards the fields below.
	id         string // assigned by the coordinator; "" before
	generation int    // -1 before the first
}

// Consume joins the group in the background: Fetch waits until the member has partitions.
func (l *Log) Consume(topic stream.Topic, group string) (stream.Reader, error) {
	if err := stream.CheckPlace(l, topic, 0); err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, stream.ErrClosed
	}
	g := l.group(topic, group)
	p := newPoller(l.cluster, topic, &l.counters[topic])
	m := &member{reader: reader{poller: p, wake: wake.NewSignal()}, log: l, group: g,
		generation: -1}
	g.members[m] = true
	var ctx context.Context
	ctx, m.cancel = context.WithCancel(context.Background())
	m.running.Go(func() { m.run(ctx) })
	return m, nil
}

// group returns this process's record of a group, and creates it if needed. The caller holds mu.
func (l *Log) group(topic stream.Topic, name string) *membership {
	g := l.groups[topic][name]
	if g == nil {
		g = &membership{name: l.cluster.names[topic] + "." + name, members: map[*member]bool{}}
		l.groups[topic][name] = g
	}
	return g
}

// Close leaves the group, so that the others need not wait for a session timeout.
func (m *member) Close() error {
	m.closing.Do(func() {
		m.end()
		m.cancel()
		m.running.Wait()
		m.poller.close()
		m.log.mu.Lock()
		defer m.log.mu.Unlock()
		delete(m.group.members, m)
	})
	return nil
}

// run stays a member until ctx ends, then leaves.
func (m *member) run(ctx context.Context) {
	failures := 0
	for ctx.Err() == nil {
		joined, err := m.session(ctx)
		if joined {
			failures = 0
		}
		if err == nil || ctx.Err() != nil {
			continue
		}
		failures++
		if worthWarning(failures) {
			m.log.config.Logger.Warn("kafka: not in the group", "group", m.group.name, "failures",
				failures, "error", err)
		}
		pauses.Wait(ctx, m.log.config.Clock, failures)
	}
	m.leave()
}

func (m *member) leave() {
	if m.id == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), leaveTimeout)
	defer cancel()
	_, err := m.client().LeaveGroup(ctx, &segmentio.LeaveGroupRequest{GroupID: m.group.name,
		Members: []segmentio.LeaveGroupRequestMember{{ID: m.id}}})
	if err != nil {
		m.log.config.Logger.Warn("kafka: cannot leave the group", "group", m.group.name, "error",
			err)
	}
}

func (m *member) client() *segmentio.Client { return &m.log.cluster.client }

func (m *member) topic() string { return m.log.cluster.names[m.poller.topic] }

// session joins the group and stays until it must rejoin, which is not an error.
func (m *member) session(ctx context.Context) (joined bool, err error) {
	generation, assignments, err := m.join(ctx)
	if err != nil {
		return false, m.answered(err)
	}
	partitions, err := m.sync(ctx, generation, assignments)
	if err != nil {
		return false, m.answered(err)
	}
	committed, err := m.positions(ctx, partitions)
	if err != nil {
		return false, err
	}
	m.adopt(generation, partitions, committed)
	m.log.counters[m.poller.topic].rebalances.Add(1)
	return true, m.heartbeats(ctx, generation)
}

// positions looks up the group's positions, for as long as the session survives without heartbeats.
func (m *member) positions(ctx context.Context, partitions []int) (committed []int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, sessionTimeout/2)
	defer cancel()
	err = m.log.cluster.attempt(ctx, "look up positions of "+m.group.name,
		func(ctx context.Context) (err error) {
			committed, err = m.log.cluster.committed(ctx, m.poller.topic, m.group.name, partitions)
			return err
		})
	return committed, err
}

// answered handles an error of the coordinator: nil says to rejoin at once.
func (m *member) answered(err error) error {
	switch {
	case errors.Is(err, segmentio.RebalanceInProgress):
		return nil
	case errors.Is(err, segmentio.UnknownMemberId), errors.Is(err, segmentio.IllegalGeneration):
		m.forfeit()
	}
	return err
}

// forfeit gives up the member's partitions: the coordinator has already reassigned them.
func (m *member) forfeit() {
	m.setID("")
	m.adopt(-1, nil, nil)
}

func (m *member) setID(id string) {
	m.poller.mu.Lock()
	defer m.poller.mu.Unlock()
	m.id = id
}

// join returns the new generation. If the coordinator chose this member as leader, it also returns
// the assignments of all members.
func (m *member) join(ctx context.Context) (int, []syncgroup.RequestAssignment, error) {
	ctx, cancel := context.WithTimeout(ctx, rebalanceTimeout+adminTimeout)
	defer cancel()
	m.poller.mu.Lock()
	owned := make([]int, len(m.owned))
	for i, c := range m.owned {
		owned[i] = c.partition
	}
	m.poller.mu.Unlock()
	request := &segmentio.JoinGroupRequest{GroupID: m.group.name, MemberID: m.id,
		SessionTimeout:   sessionTimeout,
		RebalanceTimeout: rebalanceTimeout, ProtocolType: protocolType,
		Protocols: []segmentio.GroupProtocol{{Name: protocolName,
			Metadata: segmentio.GroupProtocolSubscription{
				Topics: []string{m.topic()}, OwnedPartitions: map[string][]int{m.topic(): owned}}}}}
	response, err := m.client().JoinGroup(ctx, request)
	if err == nil && errors.Is(response.Error, segmentio.MemberIDRequired) {
		m.setID(response.MemberID)
		request.MemberID = response.MemberID
		response, err = m.client().JoinGroup(ctx, request)
	}
	if err != nil {
		return 0, nil, err
	}
	if response.Error != nil {
		return 0, nil, fmt.Errorf("join: %w", response.Error)
	}
	m.setID(response.MemberID)
	if response.LeaderID != response.MemberID {
		return response.GenerationID, nil, nil
	}
	members := map[string][]int{}
	for _, other := range response.Members {
		members[other.ID] = other.Metadata.OwnedPartitions[m.topic()]
	}
	assignments, err := m.assignments(deal(members, m.log.config.Partitions))
	return response.GenerationID, assignments, err
}

// assignments encodes what deal returned.
func (m *member) assignments(dealt map[string][]int) ([]syncgroup.RequestAssignment, error) {
	var assignments []syncgroup.RequestAssignment
	for id, partitions := range dealt {
		owned := consumer.TopicPartition{Topic: m.topic()}
		for _, partition := range partitions {
			owned.Partitions = append(owned.Partitions, int32(partition))
		}
		encoded, err := protocol.Marshal(consumer.MaxVersionSupported, consumer.Assignment{
			Version:            consumer.MaxVersionSupported,
			AssignedPartitions: []consumer.TopicPartition{owned}})
		if err != nil {
			return nil, fmt.Errorf("assign: %w", err)
		}
		assignments = append(assignments,
			syncgroup.RequestAssignment{MemberID: id, Assignment: encoded})
	}
	return assignments, nil
}

// sync sends the leader's assignments, and returns the member's own partitions. kafka-go's
// SyncGroup hides the errors of responses without partitions.
func (m *member) sync(ctx context.Context, generation int,
	assignments []syncgroup.RequestAssignment) ([]int, error) {
	ctx, cancel := context.WithTimeout(ctx, rebalanceTimeout+adminTimeout)
	defer cancel()
	answer, err := m.log.cluster.transport.RoundTrip(ctx, m.client().Addr,
		&syncgroup.Request{GroupID: m.group.name,
			GenerationID: int32(generation), MemberID: m.id, ProtocolType: protocolType,
			ProtocolName: protocolName,
			Assignments:  assignments})
	if err != nil {
		return nil, err
	}
	response := answer.(*syncgroup.Response)
	if err := errorOf(response.ErrorCode); err != nil {
		return nil, fmt.Errorf("sync: %w", err)
	}
	if len(response.Assignments) == 0 {
		return nil, nil
	}
	var own consumer.Assignment
	if err := protocol.Unmarshal(response.Assignments, consumer.MaxVersionSupported,
		&own); err != nil {
		return nil, fmt.Errorf("sync: %w", err)
	}
	var partitions []int
	for _, t := range own.AssignedPartitions {
		for _, partition := range t.Partitions {
			if t.Topic != m.topic() || partition < 0 || int(partition) >= m.log.config.Partitions {
				return nil, fmt.Errorf("sync: dealt partition %d of %s", partition, t.Topic)
			}
			partitions = append(partitions, int(partition))
		}
	}
	return partitions, nil
}

// committed returns a group's position in each partition: the offset after the last committed
// message, -1 for none.
func (c *cluster) committed(ctx context.Context, topic stream.Topic, group string,
	partitions []int) ([]int64, error) {
	if len(partitions) == 0 {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, adminTimeout)
	defer cancel()
	response, err := c.client.OffsetFetch(ctx, &segmentio.OffsetFetchRequest{GroupID: group,
		Topics: map[string][]int{c.names[topic]: partitions}})
	if err == nil {
		err = response.Error
	}
	if err != nil {
		return nil, err
	}
	found := map[int]int64{}
	for _, p := range response.Topics[c.names[topic]] {
		if p.Error != nil {
			return nil, fmt.Errorf("position in partition %d: %w", p.Partition, p.Error)
		}
		found[p.Partition] = p.CommittedOffset
	}
	committed := make([]int64, len(partitions))
	for i, partition := range partitions {
		offset, ok := found[partition]
		if !ok {
			return nil, fmt.Errorf("no answer for the position in partition %d", partition)
		}
		committed[i] = offset
	}
	return committed, nil
}

// adopt makes partitions the member's own.
func (m *member) adopt(generation int, partitions []int, committed []int64) {
	m.poller.mu.Lock()
	kept := map[int]*cursor{}
	// If a generation was missed, another member may have read on in between.
	if generation >= 0 && generation == m.generation+1 {
		for _, c := range m.owned {
			kept[c.partition] = c
		}
	}
	before := m.owned
	m.owned, m.turn, m.generation = nil, 0, generation
	for i, partition := range partitions {
		c := kept[partition]
		if c == nil {
			c = newCursor(partition, m.wake, committed[i])
			c.given, c.committed = committed[i], committed[i]
			c.restarting = committed[i] < 0
		}
		m.owned = append(m.owned, c)
	}
	m.poller.mu.Unlock()
	for _, c := range before {
		if !slices.Contains(m.owned, c) {
			m.poller.remove(c)
		}
	}
	for _, c := range m.owned {
		m.poller.put(c)
	}
	m.wake.Raise() // kept partitions may hold messages
}

// heartbeats keeps up the membership until it must be renewed.
func (m *member) heartbeats(ctx context.Context, generation int) error {
	heard := m.log.config.Clock.Now()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-m.log.config.Clock.After(heartbeatEvery):
		}
		err := m.heartbeat(ctx, generation)
		switch {
		case err == nil:
			heard = m.log.config.Clock.Now()
		case errors.Is(err, segmentio.RebalanceInProgress),
			errors.Is(err, segmentio.UnknownMemberId),
			errors.Is(err, segmentio.IllegalGeneration), errors.Is(err, segmentio.FencedInstanceID):
			return m.answered(err)
		case m.log.config.Clock.Now().Sub(heard) > sessionTimeout:
			return err // by now the coordinator considers the member dead
		}
	}
}

// Commit repeats until the coordinator has the positions. It skips partitions that the member no
// longer owns: their messages come again to the new owner.
func (m *member) Commit(ctx context.Context, messages []stream.Message) error {
	after := map[int]int64{}
	for _, message := range messages {
		after[message.Partition] = max(after[message.Partition], message.Offset+1)
	}
	return m.log.cluster.attempt(ctx, "commit to "+m.group.name, func(ctx context.Context) error {
		return m.commit(ctx, after)
	})
}

func (m *member) commit(ctx context.Context, after map[int]int64) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	request := segmentio.OffsetCommitRequest{GroupID: m.group.name}
	var commits []segmentio.OffsetCommit
	cursors := map[int]*cursor{}
	m.poller.mu.Lock()
	closed := m.closed
	request.GenerationID, request.MemberID = m.generation, m.id
	for _, c := range m.owned {
		// An offset beyond given is from before the partition changed hands or the topic was
		// re-created.
		offset := after[c.partition]
		if offset > c.committed && offset <= c.given {
			commits = append(commits,
				segmentio.OffsetCommit{Partition: c.partition, Offset: offset})
			cursors[c.partition] = c
		}
	}
	m.poller.mu.Unlock()
	if closed {
		return stream.ErrClosed
	}
	if len(commits) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, adminTimeout)
	defer cancel()
	request.Topics = map[string][]segmentio.OffsetCommit{m.topic(): commits}
	response, err := m.client().OffsetCommit(ctx, &request)
	if err != nil {
		return err
	}
	m.poller.mu.Lock()
	defer m.poller.mu.Unlock()
	for _, p := range response.Topics[m.topic()] {
		c := cursors[p.Partition]
		switch {
		case c == nil:
		case p.Error != nil:
			err = fmt.Errorf("partition %d: %w", p.Partition, p.Error)
		default:
			c.committed = max(c.committed, after[p.Partition])
		}
	}
	return err
}

// deal gives every partition to one member. Members keep their partitions as far as their share
// allows. The others go to the members with the fewest. It moves no more than necessary. members
// says who owns what; if two claim a partition, the smaller name keeps it.
func deal(members map[string][]int, partitions int) map[string][]int {
	ids := slices.Sorted(maps.Keys(members))
	owners := make([]string, partitions)
	dealt := make(map[string][]int, len(ids))
	most := (partitions + len(ids) - 1) / len(ids)
	for _, id := range ids {
		dealt[id] = nil
		for _, partition := range members[id] {
			if partition >= 0 && partition < partitions && owners[partition] == "" &&
				len(dealt[id]) < most {
				owners[partition] = id
				dealt[id] = append(dealt[id], partition)
			}
		}
	}
	fewer := func(a, b string) int { return len(dealt[a]) - len(dealt[b]) }
	for partition, owner := range owners {
		if owner == "" {
			id := slices.MinFunc(ids, fewer)
			dealt[id] = append(dealt[id], partition)
		}
	}
	for {
		from, to := slices.MaxFunc(ids, fewer), slices.MinFunc(ids, fewer)
		if len(dealt[from]) <= len(dealt[to])+1 {
			return dealt
		}
		last := len(dealt[from]) - 1
		dealt[to] = append(dealt[to], dealt[from][last])
		dealt[from] = dealt[from][:last]
	}
}
