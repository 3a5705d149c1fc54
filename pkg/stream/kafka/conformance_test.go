package kafka_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	segmentio "github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kfake"
	"go.uber.org/goleak"

	"shoal.dev/shoal/pkg/stream"
	"shoal.dev/shoal/pkg/stream/kafka"
	"shoal.dev/shoal/pkg/stream/streamtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestConformanceOnFake needs no installed brokers.
func TestConformanceOnFake(t *testing.T) {
	streamtest.Run(t, func(t *testing.T) stream.Log { return open(t, fakeBrokers(t), 4) })
}

// TestConformance runs on real brokers.
func TestConformance(t *testing.T) {
	brokers := realBrokers(t)
	streamtest.Run(t, func(t *testing.T) stream.Log { return open(t, brokers, 4) })
}

// realBrokers returns the addresses of real Kafka brokers.
func realBrokers(t testing.TB) []string {
	t.Helper()
	brokers := os.Getenv("KAFKA_BROKERS")
	if brokers == "" {
		if os.Getenv("SHOAL_CLUSTER_SUITE") == "1" {
			t.Fatal("KAFKA_BROKERS is not set")
		}
		t.Skip("KAFKA_BROKERS is not set")
	}
	return strings.Split(brokers, ",")
}

func fakeBrokers(t testing.TB, options ...kfake.Opt) []string {
	t.Helper()
	return fakeCluster(t, options...).ListenAddrs()
}

func fakeCluster(t testing.TB, options ...kfake.Opt) *kfake.Cluster {
	t.Helper()
	fake, err := kfake.NewCluster(append([]kfake.Opt{kfake.NumBrokers(3)}, options...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(fake.Close)
	return fake
}

// open opens a log with its own topics.
func open(t testing.TB, brokers []string, partitions int) *kafka.Log {
	t.Helper()
	return openPrefix(t, brokers, partitions, newPrefix(t, brokers))
}

// newPrefix returns a prefix that no other test uses, and deletes its topics at the end.
func newPrefix(t testing.TB, brokers []string) string {
	t.Helper()
	prefix := fmt.Sprintf("test.%x.", time.Now().UnixNano())
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := deleteTopics(ctx, brokers, prefix); err != nil {
			t.Logf("cannot delete topics: %v", err)
		}
	})
	return prefix
}

func deleteTopics(ctx context.Context, brokers []string, prefix string) error {
	transport := &segmentio.Transport{Context: ctx}
	defer transport.CloseIdleConnections()
	client := segmentio.Client{Addr: segmentio.TCP(brokers...), Transport: transport}
	request := segmentio.DeleteTopicsRequest{}
	for _, topic := range stream.Topics() {
		request.Topics = append(request.Topics, prefix+topic.String())
	}
	response, err := client.DeleteTopics(ctx, &request)
	if err != nil {
		return err
	}
	return errors.Join(slices.Collect(maps.Values(response.Errors))...)
}

func openPrefix(t testing.TB, brokers []string, partitions int, prefix string) *kafka.Log {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	log, err := kafka.Open(ctx,
		kafka.Config{Brokers: brokers, Prefix: prefix, Partitions: partitions, Node: t.Name(),
			Logger: slog.New(slog.NewTextHandler(t.Output(), nil))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = log.Close() })
	return log
}
