package streamtest

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"

	"shoal.dev/shoal/pkg/stream"
)

// Faults says what a Faulty does to a topic's records, each with a probability from 0 to 1.
type Faults struct {
	// Drop accepts a record but loses it.
	Drop float64
	// Repeat follows a record with a copy of one of the partition's last records, itself or an
	// earlier one.
	Repeat float64
}

// Faulty is a log that loses and repeats records, on top of a sound one. Everyone must use the
// sound log through the same Faulty. It prefixes each record with the topic's number of wipes,
// which shortens MaxRecordBytes by headBytes. What it does to a partition depends only on its seed
// and on that partition's records.
type Faulty struct {
	stream.Log

	mu     sync.Mutex
	seed   uint64
	topics map[stream.Topic]*faultyTopic
}

// headBytes is the length of the number before each record.
const headBytes = 8

// remembered is how far back a repeated record may be.
const remembered = 8

type faultyTopic struct {
	faults     Faults
	wipes      uint64
	lost       int64
	partitions map[int]*faultyPartition
}

type faultyPartition struct {
	random *rand.Rand
	last   [][]byte // newest last, at most remembered of them
}

// NewFaulty wraps a log; without Set and Wipe it changes nothing.
func NewFaulty(sound stream.Log, seed uint64) *Faulty {
	return &Faulty{Log: sound, seed: seed, topics: map[stream.Topic]*faultyTopic{}}
}

// Set changes a topic's faults from now on.
func (f *Faulty) Set(topic stream.Topic, faults Faults) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.topic(topic).faults = faults
}

// Wipe loses every record of the topic that no reader has fetched yet, in all partitions. Until a
// reader reaches them, the sound log still counts them in Lag.
func (f *Faulty) Wipe(topic stream.Topic) {
	f.mu.Lock()
	defer f.mu.Unlock()
	t := f.topic(topic)
	t.wipes++
	for _, p := range t.partitions {
		p.last = nil
	}
}

// Lost returns how many of the topic's records were dropped, or wiped and reached by a reader.
func (f *Faulty) Lost(topic stream.Topic) int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.topic(topic).lost
}

// topic returns a topic's faults. The caller holds mu.
func (f *Faulty) topic(topic stream.Topic) *faultyTopic {
	t := f.topics[topic]
	if t == nil {
		t = &faultyTopic{partitions: map[int]*faultyPartition{}}
		f.topics[topic] = t
	}
	return t
}

// partition returns a partition's faults. The caller holds mu.
func (f *Faulty) partition(topic stream.Topic, partition int) *faultyPartition {
	t := f.topic(topic)
	p := t.partitions[partition]
	if p == nil {
		p = &faultyPartition{random: rand.New(rand.NewPCG(f.seed,
			uint64(topic)<<32|uint64(partition)))}
		t.partitions[partition] = p
	}
	return p
}

// Publish passes on the records that are not dropped, and repetitions.
func (f *Faulty) Publish(ctx context.Context, topic stream.Topic, partition int,
	records ...[]byte) error {
	return f.publish(topic, partition, records, func(passed [][]byte) error {
		return f.Log.Publish(ctx, topic, partition, passed...)
	})
}

// TryPublish passes on the records that are not dropped, and repetitions.
func (f *Faulty) TryPublish(topic stream.Topic, partition int, records ...[]byte) error {
	return f.publish(topic, partition, records, func(passed [][]byte) error {
		return f.Log.TryPublish(topic, partition, passed...)
	})
}

func (f *Faulty) publish(topic stream.Topic, partition int, records [][]byte,
	send func([][]byte) error) error {
	passed, last, lost := f.spoil(topic, partition, records)
	if err := send(passed); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	// Only now: a refused record must neither come again nor count as lost.
	f.partition(topic, partition).last = last
	f.topic(topic).lost += lost
	return nil
}

// spoil decides each record's fate: which records are passed on, which are the partition's last
// ones then, and how many are lost.
func (f *Faulty) spoil(topic stream.Topic, partition int, records [][]byte) (passed, last [][]byte,
	lost int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	t, p := f.topic(topic), f.partition(topic, partition)
	last = slices.Clone(p.last)
	for _, record := range records {
		if p.random.Float64() < t.faults.Drop {
			lost++
			continue
		}
		headed := append(binary.BigEndian.AppendUint64(make([]byte, 0, headBytes+len(record)),
			t.wipes), record...)
		passed = append(passed, headed)
		if len(last) == remembered {
			last = slices.Delete(last, 0, 1)
		}
		last = append(last, headed)
		if p.random.Float64() < t.faults.Repeat {
			passed = append(passed, bytes.Clone(last[p.random.IntN(len(last))]))
		}
	}
	return passed, last, lost
}

// Tail reads the records that are not wiped.
func (f *Faulty) Tail(topic stream.Topic, partition int) (stream.Reader, error) {
	return f.reader(topic)(f.Log.Tail(topic, partition))
}

// Consume reads the records that are not wiped.
func (f *Faulty) Consume(topic stream.Topic, group string) (stream.Reader, error) {
	return f.reader(topic)(f.Log.Consume(topic, group))
}

func (f *Faulty) reader(topic stream.Topic) func(stream.Reader, error) (stream.Reader, error) {
	return func(sound stream.Reader, err error) (stream.Reader, error) {
		if err != nil {
			return nil, err
		}
		return &faultyReader{Reader: sound, log: f, topic: topic, places: map[int]*place{}}, nil
	}
}

// faultyReader leaves out wiped records. It commits them as soon as all earlier ones are committed,
// so that the sound log does not keep them.
type faultyReader struct {
	stream.Reader
	log    *Faulty
	topic  stream.Topic
	places map[int]*place // by partition
}

// place holds offsets of a partition: of the last delivered and committed messages (-1: none), and
// the wiped message that follows, if any.
type place struct {
	delivered, committed int64
	wiped                *stream.Message
}

// Fetch delivers the messages that are not wiped.
func (r *faultyReader) Fetch(ctx context.Context, most int) ([]stream.Message, error) {
	for {
		messages, err := r.Reader.Fetch(ctx, most)
		if err != nil {
			return nil, err
		}
		kept, err := r.sift(messages)
		if err != nil {
			return nil, err
		}
		if err := r.commitWiped(ctx); err != nil {
			return nil, err
		}
		if len(kept) > 0 {
			return kept, nil
		}
	}
}

func (r *faultyReader) sift(messages []stream.Message) ([]stream.Message, error) {
	r.log.mu.Lock()
	defer r.log.mu.Unlock()
	t := r.log.topic(r.topic)
	var kept []stream.Message
	for _, message := range messages {
		if len(message.Value) < headBytes {
			return nil, fmt.Errorf("streamtest: record of %d bytes was not published "+
				"through this Faulty", len(message.Value))
		}
		p := r.places[message.Partition]
		if p == nil {
			p = &place{delivered: -1, committed: -1}
			r.places[message.Partition] = p
		}
		if binary.BigEndian.Uint64(message.Value) < t.wipes {
			t.lost++
			p.wiped = &stream.Message{Partition: message.Partition, Offset: message.Offset}
			continue
		}
		message.Value = message.Value[headBytes:]
		p.delivered, p.wiped = message.Offset, nil
		kept = append(kept, message)
	}
	return kept, nil
}

// Commit also commits the wiped records that follow.
func (r *faultyReader) Commit(ctx context.Context, messages []stream.Message) error {
	if err := r.Reader.Commit(ctx, messages); err != nil {
		return err
	}
	for _, message := range messages {
		if p := r.places[message.Partition]; p != nil {
			p.committed = max(p.committed, message.Offset)
		}
	}
	return r.commitWiped(ctx)
}

func (r *faultyReader) commitWiped(ctx context.Context) error {
	for _, p := range r.places {
		if p.wiped == nil || p.committed < p.delivered {
			continue
		}
		if err := r.Reader.Commit(ctx, []stream.Message{*p.wiped}); err != nil {
			return err
		}
		p.wiped = nil
	}
	return nil
}
