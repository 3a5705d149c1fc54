// Package stream owns the three topics: tasks, pages and receipts. A log here orders the records of
// one partition and delivers each at least once while the log lives. A log may be lost at any time,
// so nothing in it may be the only copy. The package knows the record encodings (record.go), but
// not what records mean.
package stream

import (
	"context"
	"errors"
	"fmt"
)

// Topic is one of the three topics.
type Topic uint8

// The topics, in the order in which a page passes them.
const (
	Tasks Topic = iota
	Pages
	Receipts
	topicCount
)

// Topics returns all topics, in the same order.
func Topics() []Topic { return []Topic{Tasks, Pages, Receipts} }

// String returns the topic's name.
func (t Topic) String() string {
	switch t {
	case Tasks:
		return "tasks"
	case Pages:
		return "pages"
	case Receipts:
		return "receipts"
	}
	return "unknown"
}

// ErrFull is TryPublish's error if the partition has no room.
var ErrFull = errors.New("stream: partition is full")

// ErrClosed is the error of every call on a closed log or reader.
var ErrClosed = errors.New("stream: closed")

// ErrTooLarge is the error for a record of more than MaxRecordBytes.
var ErrTooLarge = errors.New("stream: record is too large")

// MaxRecordBytes is the most bytes of one encoded record.
const MaxRecordBytes = 8 << 20

// Message is a record with its place. Its Value must not be changed, nor kept past the reader's
// next Fetch.
type Message struct {
	Partition int
	Offset    int64
	Value     []byte
}

// Log is the three topics, each with Partitions() partitions. Implementations are safe for
// concurrent use.
type Log interface {
	// Partitions returns a number that never changes, 1 to 65,535.
	Partitions() int
	// Publish appends the records in order to one partition and returns once the log has accepted
	// them all. While the partition is full it waits, until ctx ends. After an error, any prefix of
	// the records may have been accepted. The log takes over the slices.
	Publish(ctx context.Context, topic Topic, partition int, records ...[]byte) error
	// TryPublish never waits: it accepts all records, or returns ErrFull and accepts none. A log on
	// other machines only queues them in this process, and loses them if it cannot pass them on or
	// the process ends.
	TryPublish(topic Topic, partition int, records ...[]byte) error
	// Tail reads one partition from its end: it delivers only what is published after Tail has
	// returned. A new Tail of a partition takes over: calls of an older one of the same Log return
	// ErrClosed. A log on other machines asks one of them, and fails if there is no answer within
	// seconds.
	Tail(topic Topic, partition int) (Reader, error)
	// Consume reads all partitions of a topic as one member of a named group. The log keeps the
	// group's committed positions and deals the partitions out among its members. Uncommitted
	// messages come again after a member's end, or when their partition goes to another member.
	Consume(topic Topic, group string) (Reader, error)
	// Lag returns how many accepted records a topic still holds: unread ones for Tail, uncommitted
	// ones for Consume. A log on other machines counts the tails and groups that were opened on
	// this Log. Its result may be some seconds old.
	Lag(topic Topic) int64
	// Watch makes Lag count a group without members in the processes of this Log.
	Watch(topic Topic, group string)

	// Embedded says that the log belongs to this process and ends with it. Any other log also
	// serves other processes.
	Embedded() bool
	// Identity returns the log's name: two logs are the same if and only if their names are equal.
	// "": it has none.
	Identity(ctx context.Context) (string, error)
	// Claim makes owner the log's owner unless it has another one already, and returns its owner.
	// With take, owner replaces any other. An owner is 1 to 64 letters and digits. An embedded log
	// belongs to whoever asks.
	Claim(ctx context.Context, owner string, take bool) (whose string, err error)

	// Close ends every call with ErrClosed. Idempotent.
	Close() error
}

// Reader delivers messages to one goroutine.
type Reader interface {
	// Fetch waits for at least one message and returns at most most, in order within each
	// partition. It ends with ctx's error, or ErrClosed.
	Fetch(ctx context.Context, most int) ([]Message, error)
	// Commit marks everything up to and including the given messages as read for good (Consume
	// only; a no-op for Tail). It skips partitions that went to another member: their uncommitted
	// messages come again there.
	Commit(ctx context.Context, messages []Message) error
	// Close gives the partitions back. Idempotent.
	Close() error
}

// MaxPartitions bounds Log.Partitions.
const MaxPartitions = 1<<16 - 1

// CheckPlace refuses a topic or partition that log does not have. Implementations use it and
// CheckPublish.
func CheckPlace(log Log, topic Topic, partition int) error {
	if topic >= topicCount || partition < 0 || partition >= log.Partitions() {
		return fmt.Errorf("stream: no partition %d of %d of topic %s", partition, log.Partitions(),
			topic)
	}
	return nil
}

// CheckPublish refuses what no log accepts.
func CheckPublish(log Log, topic Topic, partition int, records [][]byte) error {
	for _, record := range records {
		if len(record) > MaxRecordBytes {
			return fmt.Errorf("%w: %d bytes of at most %d", ErrTooLarge, len(record),
				MaxRecordBytes)
		}
	}
	return CheckPlace(log, topic, partition)
}
