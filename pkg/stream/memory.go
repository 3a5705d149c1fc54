package stream

import (
	"context"
	"fmt"
)

// Defaults of Config.
const (
	DefaultMaxRecords = 8192
	DefaultMaxBytes   = 64 << 20
)

// recordOverheadBytes is the cost of a held record beyond its bytes: its slice header, with room
// for the queue's growth, and the allocator's rounding.
const recordOverheadBytes = 64

// Config bounds a Memory. Zero values mean the defaults.
type Config struct {
	// Partitions of each topic, 1 to 65,535. There is no default, since it is fixed when a cluster
	// is created.
	Partitions int
	// MaxRecords is the most records that one partition of a topic holds, 1 or more.
	MaxRecords int
	// MaxBytes is the most bytes that the whole log holds, including the records' overhead. Each
	// topic has its own third. So piled-up pages never block the receipts that would let them move
	// on. Each third must have room for a record of MaxRecordBytes.
	MaxBytes int64
}

// Memory is a log in the process's memory. It is bounded, pushes back when it is full, and is lost
// with the process. It starts no goroutines.
//
// A record is held until every reader is done with it. That is, the partition's Tail has fetched
// it, and each group that ever consumed the topic has committed it. A group outlives its members,
// as on any log, so a group name must not be made up anew at each start. A group begins at the
// oldest held record. Records that nobody reads stay, up to the bounds.
//
// Waiting publishers are served in the order in which they came. But a full partition holds up only
// its own publishers.
type Memory struct {
	partitions int
	topics     [topicCount]*memoryTopic
}

var _ Log = (*Memory)(nil)

// NewMemory makes an empty log. Its error names the setting that is out of range.
func NewMemory(config Config) (*Memory, error) {
	if config.MaxRecords == 0 {
		config.MaxRecords = DefaultMaxRecords
	}
	if config.MaxBytes == 0 {
		config.MaxBytes = DefaultMaxBytes
	}
	topicBytes := config.MaxBytes / int64(topicCount)
	switch {
	case config.Partitions < 1 || config.Partitions > MaxPartitions:
		return nil, fmt.Errorf("stream: Partitions is %d, want 1 to %d", config.Partitions,
			MaxPartitions)
	case config.MaxRecords < 1:
		return nil, fmt.Errorf("stream: MaxRecords is %d, want 1 or more", config.MaxRecords)
	case topicBytes < MaxRecordBytes+recordOverheadBytes:
		return nil, fmt.Errorf("stream: MaxBytes is %d, want %d or more",
			config.MaxBytes, int64(topicCount)*(MaxRecordBytes+recordOverheadBytes))
	}
	m := &Memory{partitions: config.Partitions}
	for topic := range m.topics {
		m.topics[topic] = &memoryTopic{
			maxRecords: config.MaxRecords,
			maxBytes:   topicBytes,
			queues:     make([]queue, config.Partitions),
		}
	}
	return m, nil
}

// Embedded implements Log.
func (*Memory) Embedded() bool { return true }

// Identity implements Log: no other process can refer to this log.
func (*Memory) Identity(context.Context) (string, error) { return "", nil }

// Claim implements Log.
func (*Memory) Claim(_ context.Context, owner string, _ bool) (whose string, err error) {
	return owner, nil
}

// Watch implements Log: Lag counts all groups, since their members are in this process.
func (*Memory) Watch(Topic, string) {}

// Partitions returns the configured number of partitions.
func (m *Memory) Partitions() int { return m.partitions }

// Publish appends records, waiting for room.
func (m *Memory) Publish(ctx context.Context, topic Topic, partition int, records ...[]byte) error {
	if err := CheckPublish(m, topic, partition, records); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return m.topics[topic].publish(ctx, partition, records)
}

// TryPublish appends all records or none. More than MaxRecords never fit.
func (m *Memory) TryPublish(topic Topic, partition int, records ...[]byte) error {
	if err := CheckPublish(m, topic, partition, records); err != nil {
		return err
	}
	return m.topics[topic].tryPublish(partition, records)
}

// Tail takes over the partition, from its end on.
func (m *Memory) Tail(topic Topic, partition int) (Reader, error) {
	if err := CheckPlace(m, topic, partition); err != nil {
		return nil, err
	}
	return m.topics[topic].openTail(partition)
}

// Consume joins the group. A partition that changes hands continues at its committed position.
// Commits of its previous owner still count.
func (m *Memory) Consume(topic Topic, group string) (Reader, error) {
	if err := CheckPlace(m, topic, 0); err != nil {
		return nil, err
	}
	return m.topics[topic].join(group)
}

// Lag returns the number of records that the topic holds.
func (m *Memory) Lag(topic Topic) int64 {
	if topic >= topicCount {
		return 0
	}
	return m.topics[topic].lag()
}

// Close drops all records and ends all calls.
func (m *Memory) Close() error {
	for _, t := range m.topics {
		t.close()
	}
	return nil
}
