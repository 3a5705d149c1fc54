//go:build linux

package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/segmentio/kafka-go"
)

// Names of services, as faults use them. Kafka stands for all its brokers.
const (
	Kafka      = "kafka"
	Redis      = "redis"
	ClickHouse = "clickhouse"
)

// Services says where the real services are.
type Services struct {
	Brokers    []string // HOST:PORT
	Redis      string   // HOST:PORT
	ClickHouse *url.URL
	Scripts    string // folder of down and start; "" if the services cannot be controlled
}

// FromEnv reads KAFKA_BROKERS, REDIS_ADDR, CLICKHOUSE_URL and SHOAL_SERVICES. The error names what
// is missing.
func FromEnv(getenv func(string) string) (Services, error) {
	var missing []error
	need := func(name string) string {
		value := getenv(name)
		if value == "" {
			missing = append(missing, fmt.Errorf("cluster: %s is not set", name))
		}
		return value
	}
	s := Services{Brokers: strings.Split(need("KAFKA_BROKERS"), ","), Redis: need("REDIS_ADDR"),
		Scripts: getenv("SHOAL_SERVICES")}
	var err error
	if s.ClickHouse, err = url.Parse(need("CLICKHOUSE_URL")); err != nil {
		missing = append(missing, fmt.Errorf("cluster: CLICKHOUSE_URL: %w", err))
	}
	return s, errors.Join(missing...)
}

// addresses returns all addresses of a service.
func (s *Services) addresses(service string) ([]netip.AddrPort, error) {
	var texts []string
	switch service {
	case Kafka:
		texts = s.Brokers
	case Redis:
		texts = []string{s.Redis}
	case ClickHouse:
		texts = []string{s.ClickHouse.Host}
	}
	var found []netip.AddrPort
	for _, text := range texts {
		at, err := netip.ParseAddrPort(text)
		if err != nil || !at.Addr().IsLoopback() {
			return nil, fmt.Errorf("cluster: %s at %q: only an address of the loopback "+
				"can be cut off", service, text)
		}
		found = append(found, at)
	}
	return found, nil
}

// script runs a script of the services folder.
func (s *Services) script(ctx context.Context, name string, args ...string) error {
	if s.Scripts == "" {
		return fmt.Errorf("cluster: SHOAL_SERVICES is not set: the folder of the scripts that " +
			"control the services")
	}
	output, err := exec.CommandContext(ctx, filepath.Join(s.Scripts, name),
		args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("cluster: services: %s %s: %w: %s", name, strings.Join(args, " "), err,
			output)
	}
	return nil
}

// processes returns the names of a service's processes in the scripts.
func (s *Services) processes(service string) []string {
	if service != Kafka {
		return []string{service}
	}
	var names []string
	for i := range s.Brokers {
		names = append(names, fmt.Sprintf("kafka-%d", i+1))
	}
	return names
}

// Kill ends a service like a power cut; its data stays.
func (s *Services) Kill(ctx context.Context, service string) error {
	return s.script(ctx, "down", append([]string{"--kill"}, s.processes(service)...)...)
}

// Pause freezes a service.
func (s *Services) Pause(ctx context.Context, service string) error {
	return s.script(ctx, "down", append([]string{"--pause"}, s.processes(service)...)...)
}

// Resume lets a paused service go on.
func (s *Services) Resume(ctx context.Context, service string) error {
	return s.script(ctx, "down", append([]string{"--resume"}, s.processes(service)...)...)
}

// Start brings a killed service back and waits until it answers.
func (s *Services) Start(ctx context.Context, service string) error {
	if err := s.script(ctx, "start", s.processes(service)...); err != nil {
		return err
	}
	return await(ctx, service+" answers", func() error { return s.answers(ctx, service) })
}

// KillBroker ends one broker of Kafka, numbered from 0.
func (s *Services) KillBroker(ctx context.Context, broker int) error {
	return s.script(ctx, "down", "--kill", s.processes(Kafka)[broker])
}

// StartBroker brings a killed broker back and waits until Kafka answers.
func (s *Services) StartBroker(ctx context.Context, broker int) error {
	if err := s.script(ctx, "start", s.processes(Kafka)[broker]); err != nil {
		return err
	}
	return await(ctx, "kafka answers", func() error { return s.answers(ctx, Kafka) })
}

// answers checks that a service responds.
func (s *Services) answers(ctx context.Context, service string) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	switch service {
	case Kafka:
		_, err := s.kafka().Metadata(ctx, &kafka.MetadataRequest{})
		return err
	case Redis:
		return s.redis(ctx, "PING")
	}
	return s.query(ctx, "SELECT 1")
}

func (s *Services) kafka() *kafka.Client { return &kafka.Client{Addr: kafka.TCP(s.Brokers...)} }

// redis sends one command, and ignores the content of its answer.
func (s *Services) redis(ctx context.Context, command string) error {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", s.Redis)
	if err != nil {
		return fmt.Errorf("cluster: redis: %w", err)
	}
	defer conn.Close()
	if deadline, ok := ctx.Deadline(); ok {
		_ = conn.SetDeadline(deadline)
	}
	if _, err := io.WriteString(conn, command+"\r\n"); err != nil {
		return fmt.Errorf("cluster: redis: %w", err)
	}
	answer := make([]byte, 64)
	n, err := conn.Read(answer)
	if err != nil || n == 0 || answer[0] == '-' {
		return fmt.Errorf("cluster: redis: %s: %q, %w", command, answer[:n], err)
	}
	return nil
}

// WipeRedis removes everything that is in Redis.
func (s *Services) WipeRedis(ctx context.Context) error { return s.redis(ctx, "FLUSHALL") }

// query sends one statement to ClickHouse.
func (s *Services) query(ctx context.Context, statement string) error {
	server := *s.ClickHouse
	server.Path = "/"
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, server.String(),
		strings.NewReader(statement))
	if err != nil {
		return fmt.Errorf("cluster: clickhouse: %w", err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("cluster: clickhouse: %w", err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, 4<<10))
	if err != nil || answer.StatusCode != http.StatusOK {
		return fmt.Errorf("cluster: clickhouse: %q: %s: %s, %w", statement, answer.Status, text,
			err)
	}
	return nil
}

// topics returns the topics with the prefix.
func (s *Services) topics(ctx context.Context, prefix string) ([]kafka.Topic, error) {
	metadata, err := s.kafka().Metadata(ctx, &kafka.MetadataRequest{})
	if err != nil {
		return nil, fmt.Errorf("cluster: kafka: %w", err)
	}
	return slices.DeleteFunc(metadata.Topics, func(topic kafka.Topic) bool {
		return !strings.HasPrefix(topic.Name, prefix)
	}), nil
}

// Remove removes the topics that begin with a prefix, and a database.
func (s *Services) Remove(ctx context.Context, prefix, database string) error {
	topics, err := s.topics(ctx, prefix)
	if err == nil {
		err = s.deleteTopics(ctx, topics)
	}
	return errors.Join(err, s.query(ctx, "DROP DATABASE IF EXISTS "+database))
}

func (s *Services) deleteTopics(ctx context.Context, topics []kafka.Topic) error {
	var names []string
	for _, topic := range topics {
		names = append(names, topic.Name)
	}
	if len(names) == 0 {
		return nil
	}
	deleted, err := s.kafka().DeleteTopics(ctx, &kafka.DeleteTopicsRequest{Topics: names})
	if err != nil {
		return fmt.Errorf("cluster: kafka: delete topics: %w", err)
	}
	for name, err := range deleted.Errors {
		if err != nil && !errors.Is(err, kafka.UnknownTopicOrPartition) {
			return fmt.Errorf("cluster: kafka: delete topic %s: %w", name, err)
		}
	}
	return nil
}

// recreateTopics recreates topics, empty.
func (s *Services) recreateTopics(ctx context.Context, topics []kafka.Topic) error {
	var configs []kafka.TopicConfig
	for _, topic := range topics {
		configs = append(configs,
			kafka.TopicConfig{Topic: topic.Name, NumPartitions: len(topic.Partitions),
				ReplicationFactor: len(topic.Partitions[0].Replicas)})
	}
	// The brokers take a moment to delete topics.
	return await(ctx, "topics are made anew", func() error {
		made, err := s.kafka().CreateTopics(ctx, &kafka.CreateTopicsRequest{Topics: configs})
		if err != nil {
			return fmt.Errorf("cluster: kafka: create topics: %w", err)
		}
		for _, err := range made.Errors {
			if err != nil && !errors.Is(err, kafka.TopicAlreadyExists) { // a node was faster
				return fmt.Errorf("cluster: kafka: create topics: %w", err)
			}
		}
		return nil
	})
}

// poison writes an undecodable record into every partition of the topics. It may write several
// times if brokers that have just come back answer late.
func (s *Services) poison(ctx context.Context, topics []kafka.Topic, value []byte) error {
	for _, topic := range topics {
		for _, partition := range topic.Partitions {
			place := fmt.Sprintf("%s/%d is poisoned", topic.Name, partition.ID)
			err := await(ctx, place, func() error {
				return produce(ctx, s.kafka(), topic.Name, partition.ID,
					kafka.NewRecordReader(kafka.Record{Value: kafka.NewBytes(value)}))
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// repeat rewrites the last records of every partition of the topics, at most most per partition, in
// order.
func (s *Services) repeat(ctx context.Context, topics []kafka.Topic, most int64) error {
	client := s.kafka()
	for _, topic := range topics {
		ask := &kafka.ListOffsetsRequest{Topics: map[string][]kafka.OffsetRequest{}}
		for _, partition := range topic.Partitions {
			ask.Topics[topic.Name] = append(ask.Topics[topic.Name],
				kafka.FirstOffsetOf(partition.ID),
				kafka.LastOffsetOf(partition.ID))
		}
		listed, err := client.ListOffsets(ctx, ask)
		if err != nil {
			return fmt.Errorf("cluster: kafka: offsets of %s: %w", topic.Name, err)
		}
		for _, p := range listed.Topics[topic.Name] {
			if p.LastOffset <= p.FirstOffset {
				continue
			}
			place := fmt.Sprintf("%s/%d is repeated", topic.Name, p.Partition)
			err := await(ctx, place, func() error {
				return repeatTail(ctx, client, topic.Name, p.Partition,
					max(p.FirstOffset, p.LastOffset-most))
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// repeatTail rewrites what a partition has from an offset on.
func repeatTail(ctx context.Context, client *kafka.Client, topic string, partition int,
	from int64) error {
	read, err := client.Fetch(ctx,
		&kafka.FetchRequest{Topic: topic, Partition: partition, Offset: from, MinBytes: 1,
			MaxBytes: 1 << 20, MaxWait: time.Second})
	if err == nil {
		err = read.Error
	}
	if err != nil {
		return err
	}
	return produce(ctx, client, topic, partition, read.Records)
}

// produce writes records to a partition, on all its replicas.
func produce(ctx context.Context, client *kafka.Client, topic string, partition int,
	records kafka.RecordReader) error {
	wrote, err := client.Produce(ctx,
		&kafka.ProduceRequest{Topic: topic, Partition: partition, RequiredAcks: kafka.RequireAll,
			Records: records})
	if err == nil {
		err = wrote.Error
	}
	return err
}

// pollEvery is the interval for polling processes and services.
const pollEvery = 20 * time.Millisecond

// await repeats an attempt until it succeeds; when ctx ends, it returns the last error.
func await(ctx context.Context, what string, attempt func() error) error {
	for {
		err := attempt()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("cluster: waiting until %s: %w", what, errors.Join(ctx.Err(), err))
		case <-time.After(pollEvery):
		}
	}
}
