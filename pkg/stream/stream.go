// Package stream owns the three topics: tasks, pages and receipts. A log here orders the records of
// one partition and delivers each at least once while it lives. It may be lost at any time: nobody
// keeps in it what must not be lost. The package knows record encodings (record.go) and nothing of
// what records mean.
package stream

import (
	"context"
	"errors"
	"fmt"
)

// Topic is one of the three.
type Topic uint8

// The topics, in the order in which a page passes them.
const (
	Tasks Topic = iota
	Pages
	Receipts
	topicCount
)

// Topics are all of them, in the same order.
func Topics() []Topic { return []Topic{Tasks, Pages, Receipts} }

// String is the topic's name.
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

// ErrFull is TryPublish's answer when the partition has no room.
var ErrFull = errors.New("stream: partition is full")

// ErrClosed is the answer of every call on a closed log or reader.
var ErrClosed = errors.New("stream: closed")

// ErrTooLarge is the answer to a record of more than MaxRecordBytes.
var ErrTooLarge = errors.New("stream: record is too large")

// MaxRecordBytes bounds one encoded record.
const MaxRecordBytes = 8 << 20

// Message is a record with its place. Value must not be changed or kept past the next Fetch of its
// reader.
type Message struct {
	Partition int
	Offset    int64
	Value     []byte
}

// Log is the three topics with Partitions() partitions each. Implementations are safe for
// concurrent use.
type Log interface {
	// Partitions is fixed for the log's life, 1 to 65,535.
	Partitions() int
	// Publish appends the records in order to one partition and returns when the log has accepted
	// them all. While the partition is full it waits, until ctx ends. After an error any prefix of
	// the records may have been accepted. The log takes over the slices.
	Publish(ctx context.Context, topic Topic, partition int, records ...[]byte) error
	// TryPublish is Publish that never waits: it accepts all records or returns ErrFull and accepts
	// none. A log on other machines accepts them into this process, and loses them when it cannot
	// pass them on or the process ends.
	TryPublish(topic Topic, partition int, records ...[]byte) error
	// Tail reads one partition from its end on: what was there before is not delivered, what is
	// published after Tail has returned is. A new Tail of a partition takes over: calls of an older
	// one of the same Log return ErrClosed. On other machines it costs a question to one of them,
	// and fails when that is not answered within seconds.
	Tail(topic Topic, partition int) (Reader, error)
	// Consume reads all partitions of a topic as one member of a named group. The log keeps the
	// group's committed positions and deals the partitions out among its members. What is not
	// committed comes again after a member's end, or when its partition goes to another member.
	Consume(topic Topic, group string) (Reader, error)
	// Lag is how many accepted records a topic still holds: unread ones for Tail, uncommitted ones
	// for Consume. A log on other machines knows the tails and groups that were opened on this Log,
	// and its answer may be some seconds old.
	Lag(topic Topic) int64
	// Watch has Lag count a group that no process of this Log is a member of.
	Watch(topic Topic, group string)

	// Embedded says that the log is this process's own and ends with it. Other processes go on with
	// any other log.
	Embedded() bool
	// Identity names the log itself: two logs are one if and only if theirs are equal. "": it has
	// no name.
	Identity(ctx context.Context) (string, error)
	// Claim makes the log its owner's, unless it is another one's already, and returns whose it is.
	// With take it is the owner's from now on, whoever had it. An owner is 1 to 64 letters and
	// digits. An embedded log belongs to whoever asks.
	Claim(ctx context.Context, owner string, take bool) (whose string, err error)

	// Close ends every call with ErrClosed. Idempotent.
	Close() error
}

// Reader delivers messages to one goroutine.
type Reader interface {
	// Fetch waits for at least one message and returns up to most of them, in order within each
	// partition. It ends with ctx's error, or ErrClosed.
	Fetch(ctx context.Context, most int) ([]Message, error)
	// Commit makes everything up to and with the given messages read for good (Consume only; a
	// no-op for Tail). It leaves out partitions that have gone to another member: what is not
	// committed of them comes again there.
	Commit(ctx context.Context, messages []Message) error
	// Close gives the partitions back. Idempotent.
	Close() error
}

// MaxPartitions bounds Log.Partitions.
const MaxPartitions = 1<<16 - 1

// CheckPlace refuses a topic or partition that log does not have. It and CheckPublish are for
// implementations.
func CheckPlace(log Log, topic Topic, partition int) error {
	if topic >= topicCount || partition < 0 || partition >= log.Partitions() {
		return fmt.Errorf("stream: no partition %d of %d of topic %s", partition, log.Partitions(),
			topic)
	}
	return nil
}

// CheckPublish refuses what no log may accept.
func CheckPublish(log Log, topic Topic, partition int, records [][]byte) error {
	for _, record := range records {
		if len(record) > MaxRecordBytes {
			return fmt.Errorf("%w: %d bytes of at most %d", ErrTooLarge, len(record),
				MaxRecordBytes)
		}
	}
	return CheckPlace(log, topic, partition)
}
