package kafka

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"slices"
	"strconv"
	"sync"
	"time"

	segmentio "github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol/metadata"

	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/stream"
	"shoal.dev/shoal/pkg/wake"
)

// Time limits towards brokers.
const (
	dialTimeout  = 3 * time.Second
	adminTimeout = 10 * time.Second // a request that no data waits for
	layoutTTL    = time.Second      // the most that cached partition leaders may be out of date
)

// maxBatchBytes is the broker's limit for a batch: one record of the largest size, with its
// framing.
const maxBatchBytes = stream.MaxRecordBytes + 4096

// cluster is the connection to the brokers, and the topics there.
type cluster struct {
	config    *Config
	client    segmentio.Client
	transport *segmentio.Transport
	names     []string // by topic
	missing   wake.Signal
	ctx       context.Context
	cancel    context.CancelFunc
	running   sync.WaitGroup

	mu     sync.Mutex
	closed bool
	conns  map[net.Conn]bool
	asked  time.Time // when askAnother last did so
}

// newCluster completes and checks the config. It does not connect yet.
func newCluster(config *Config) (*cluster, error) {
	if config.Prefix == "" {
		config.Prefix = DefaultPrefix
	}
	if config.Retention == 0 {
		config.Retention = DefaultRetention
	}
	if config.Logger == nil {
		config.Logger = slog.New(slog.DiscardHandler)
	}
	if config.Clock == nil {
		config.Clock = clock.System{}
	}
	switch {
	case len(config.Brokers) == 0:
		return nil, errors.New("kafka: Brokers is empty")
	case config.Partitions < 1 || config.Partitions > stream.MaxPartitions:
		return nil, fmt.Errorf("kafka: Partitions is %d, want 1 to %d", config.Partitions,
			stream.MaxPartitions)
	case config.Replicas < 0:
		return nil, fmt.Errorf("kafka: Replicas is %d, want 0 or more", config.Replicas)
	case config.Retention < 0:
		return nil, fmt.Errorf("kafka: Retention is %v, want more than 0", config.Retention)
	}
	c := &cluster{config: config, missing: wake.NewSignal(), conns: map[net.Conn]bool{}}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	for _, topic := range stream.Topics() {
		c.names = append(c.names, config.Prefix+topic.String())
	}
	var err error
	if c.transport, err = c.newTransport(c.names); err != nil {
		return nil, err
	}
	c.client = segmentio.Client{Addr: segmentio.TCP(config.Brokers...), Transport: c.transport}
	return c, nil
}

// newTransport returns a transport that learns the layout of some topics; nil: of all.
func (c *cluster) newTransport(topics []string) (*segmentio.Transport, error) {
	transport := &segmentio.Transport{Dial: c.dial, DialTimeout: dialTimeout,
		MetadataTTL:    layoutTTL,
		MetadataTopics: topics, ClientID: c.config.Node, TLS: c.config.TLS, Context: c.ctx}
	if c.config.SASL != nil {
		mechanism, err := c.config.SASL.mechanism()
		if err != nil {
			return nil, fmt.Errorf("kafka: SASL: %w", err)
		}
		transport.SASL = mechanism
	}
	return transport, nil
}

// conn is a connection that close can find. Otherwise one that waits for a response would outlive
// the log.
type conn struct {
	net.Conn
	cluster  *cluster
	signedIn bool // or need not sign in
}

func (c *cluster) dial(ctx context.Context, network, address string) (net.Conn, error) {
	dialer := net.Dialer{Timeout: dialTimeout}
	opened, err := dialer.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		opened.Close()
		return nil, stream.ErrClosed
	}
	c.conns[opened] = true
	return &conn{Conn: opened, cluster: c, signedIn: c.config.SASL == nil}, nil
}

// SetDeadline also bounds the sign-in. kafka-go lifts the deadline of dialing before the sign-in,
// and sets the next one for the first request. Without our deadline, a broker that falls silent in
// between would block forever.
func (c *conn) SetDeadline(deadline time.Time) error {
	if deadline.IsZero() && !c.signedIn {
		c.signedIn, deadline = true, time.Now().Add(dialTimeout)
	}
	return c.Conn.SetDeadline(deadline)
}

// Close also unregisters the connection.
func (c *conn) Close() error {
	c.cluster.mu.Lock()
	delete(c.cluster.conns, c.Conn)
	c.cluster.mu.Unlock()
	return c.Conn.Close()
}

// close ends all requests and connections.
func (c *cluster) close() {
	c.cancel()
	c.running.Wait()
	c.transport.CloseIdleConnections()
	c.mu.Lock()
	c.closed = true
	conns := slices.Collect(maps.Keys(c.conns))
	c.mu.Unlock()
	for _, opened := range conns {
		opened.Close()
	}
}

// layout is who leads which partition, at most layoutTTL old. The transport routes by it.
type layout struct{ topics []metadata.ResponseTopic }

func (c *cluster) layout(ctx context.Context) (layout, error) {
	response, err := c.transport.RoundTrip(ctx, c.client.Addr,
		&metadata.Request{TopicNames: c.names})
	if err != nil {
		return layout{}, err
	}
	return layout{response.(*metadata.Response).Topics}, nil
}

// Identity implements stream.Log. It survives the deletion and re-creation of topics. It is empty
// if the brokers do not tell their cluster's id.
func (l *Log) Identity(ctx context.Context) (string, error) {
	response, err := l.cluster.transport.RoundTrip(ctx, l.cluster.client.Addr,
		&metadata.Request{TopicNames: l.cluster.names})
	if err != nil {
		return "", fmt.Errorf("kafka: identity: %w", err)
	}
	id := response.(*metadata.Response).ClusterID
	if id == "" {
		return "", nil
	}
	return "kafka " + id + " " + l.cluster.config.Prefix, nil
}

// leader returns a broker's id, or -1 if it is unknown.
func (l layout) leader(topic stream.Topic, partition int) int32 {
	partitions := l.topics[topic].Partitions
	if l.topics[topic].ErrorCode != 0 || partition >= len(partitions) {
		return -1
	}
	return partitions[partition].LeaderID
}

// makeTopics creates the missing topics. It returns once all topics and their leaders exist, or
// when the brokers refuse us or have too few replicas. The first failure is logged at once: an
// operator waits, and a try at a wrong address may take seconds.
func (c *cluster) makeTopics(ctx context.Context) error {
	told := false
	err := c.attempt(ctx, "make topics", unlessRefused(func(ctx context.Context) error {
		err := c.tryMakeTopics(ctx)
		if err != nil && ctx.Err() == nil && !told {
			told = true
			c.config.Logger.Warn("kafka: no success with the brokers yet", "brokers",
				c.config.Brokers, "error", err)
		}
		return err
	}))
	if err != nil {
		return err
	}
	return c.attempt(ctx, "wait for topics", unlessRefused(func(ctx context.Context) error {
		known, err := c.layout(ctx)
		if err != nil {
			return err
		}
		if err := c.check(known); err != nil {
			return err
		}
		return c.durable(ctx, known)
	}))
}

func (c *cluster) tryMakeTopics(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, adminTimeout)
	defer cancel()
	known, err := c.client.Metadata(ctx, &segmentio.MetadataRequest{Topics: c.names})
	if err != nil {
		return err
	}
	replicas := c.replicas(len(known.Brokers))
	settings := []segmentio.ConfigEntry{
		{ConfigName: "cleanup.policy", ConfigValue: "delete"},
		{ConfigName: "retention.ms",
			ConfigValue: strconv.FormatInt(c.config.Retention.Milliseconds(), 10)},
		{ConfigName: "max.message.bytes", ConfigValue: strconv.Itoa(maxBatchBytes)},
	}
	if replicas >= 3 {
		settings = append(settings,
			segmentio.ConfigEntry{ConfigName: "min.insync.replicas", ConfigValue: "2"})
	}
	request := segmentio.CreateTopicsRequest{}
	for _, name := range c.names {
		request.Topics = append(request.Topics,
			segmentio.TopicConfig{Topic: name, NumPartitions: c.config.Partitions,
				ReplicationFactor: replicas, ConfigEntries: settings})
	}
	response, err := c.client.CreateTopics(ctx, &request)
	if err != nil {
		return err
	}
	there := map[string]bool{}
	for _, topic := range known.Topics {
		there[topic.Name] = topic.Error == nil
	}
	for name, err := range response.Errors {
		if err == nil || errors.Is(err, segmentio.TopicAlreadyExists) {
			continue
		}
		if there[name] && errors.Is(err, segmentio.TopicAuthorizationFailed) {
			continue // somebody else makes the topics, and has done so
		}
		return fmt.Errorf("topic %s: %w", name, err)
	}
	return nil
}

// replicas returns the number of replicas for topics that are made here.
func (c *cluster) replicas(brokers int) int {
	if c.config.Replicas > 0 {
		return c.config.Replicas
	}
	return min(DefaultReplicas, max(brokers, len(c.config.Brokers)))
}

// check returns what is missing in a layout.
func (c *cluster) check(known layout) error {
	for topic, name := range c.names {
		if err := errorOf(known.topics[topic].ErrorCode); err != nil {
			return fmt.Errorf("topic %s: %w", name, err)
		}
		if n := len(known.topics[topic].Partitions); n != c.config.Partitions {
			return fmt.Errorf("%w: topic %s has %d partitions, but Partitions is %d, and they "+
				"never change",
				errForGood, name, n, c.config.Partitions)
		}
		for partition := range c.config.Partitions {
			if known.leader(stream.Topic(topic), partition) < 0 {
				return fmt.Errorf("topic %s: partition %d has no leader", name, partition)
			}
		}
	}
	return nil
}

// start begins to re-create topics that are reported missing.
func (c *cluster) start() {
	c.running.Go(func() {
		for {
			select {
			case <-c.missing:
			case <-c.ctx.Done():
				return
			}
			c.config.Logger.Warn("kafka: a topic seems to be missing")
			if err := c.attempt(c.ctx, "make topics", c.tryMakeTopics); err != nil {
				return // closed
			}
		}
	})
}

// reportMissing requests the re-creation of missing topics. Existing topics are left alone.
func (c *cluster) reportMissing() {
	c.missing.Raise()
}

// bound is one end of a partition's records.
type bound int64

const (
	firstRecord = bound(segmentio.FirstOffset)
	afterLast   = bound(segmentio.LastOffset)
)

// boundsAtOnce is how many partitions are looked up at a time: kafka-go opens a connection for
// each.
const boundsAtOnce = 8

// offsets returns the offsets of one end of partitions, in their order.
func (c *cluster) offsets(ctx context.Context, topic stream.Topic, end bound,
	partitions []int) ([]int64, error) {
	ctx, cancel := context.WithTimeout(ctx, adminTimeout)
	defer cancel()
	found := make(map[int]int64, len(partitions))
	for some := range slices.Chunk(partitions, boundsAtOnce) {
		asked := make([]segmentio.OffsetRequest, len(some))
		for i, partition := range some {
			asked[i] = segmentio.OffsetRequest{Partition: partition, Timestamp: int64(end)}
		}
		response, err := c.client.ListOffsets(ctx, &segmentio.ListOffsetsRequest{
			Topics: map[string][]segmentio.OffsetRequest{c.names[topic]: asked}})
		if err != nil {
			return nil, err
		}
		for _, p := range response.Topics[c.names[topic]] {
			if p.Error != nil {
				return nil, fmt.Errorf("partition %d: %w", p.Partition, p.Error)
			}
			found[p.Partition] = max(p.FirstOffset, p.LastOffset)
		}
	}
	offsets := make([]int64, len(partitions))
	for i, partition := range partitions {
		offset, ok := found[partition]
		if !ok {
			return nil, fmt.Errorf("no answer for partition %d", partition)
		}
		offsets[i] = offset
	}
	return offsets, nil
}

// missing reports whether a topic did not exist when the layout was learned.
func (l layout) missing(topic stream.Topic) bool {
	return errors.Is(errorOf(l.topics[topic].ErrorCode), segmentio.UnknownTopicOrPartition)
}

// learn acts on what an error says about the cluster, after a number of failures in a row.
func (c *cluster) learn(err error, failures int) {
	switch {
	case errors.Is(err, segmentio.UnknownTopicOrPartition):
		c.reportMissing()
	case errors.Is(err, segmentio.NotLeaderForPartition) && worthWarning(failures):
		c.askAnother()
	}
}

// askAnother makes the transport learn the layout from a newly chosen broker. It would keep asking
// the same one for as long as that answers. A broker cut off from the controllers answers with what
// it last knew.
func (c *cluster) askAnother() {
	c.mu.Lock()
	now := c.config.Clock.Now()
	recently := now.Sub(c.asked) < 2*layoutTTL
	if !recently {
		c.asked = now
	}
	c.mu.Unlock()
	if !recently {
		c.transport.CloseIdleConnections()
	}
}
