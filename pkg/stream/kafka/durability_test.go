package kafka_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	segmentio "github.com/segmentio/kafka-go"

	"shoal.dev/shoal/pkg/stream"
	"shoal.dev/shoal/pkg/stream/kafka"
)

// TestTopicsThatFallShort: somebody made topics with fewer replicas, or with acknowledgement by a
// single broker. They are reported, and refused if replicas were asked for.
func TestTopicsThatFallShort(t *testing.T) {
	for name, made := range map[string]struct {
		replicas int
		confirm  string
		want     string // "": no complaint
	}{
		"thin":        {1, "1", "topic shoal.pages has 1 replicas and should have 3"},
		"two":         {2, "2", "topic shoal.pages has 2 replicas and should have 3"},
		"unconfirmed": {3, "1", "topic shoal.pages has min.insync.replicas 1 and should have 2"},
		"good":        {3, "2", ""},
		"strict":      {3, "3", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			brokers := fakeBrokers(t)
			request := &segmentio.CreateTopicsRequest{}
			for _, topic := range stream.Topics() {
				request.Topics = append(request.Topics,
					segmentio.TopicConfig{Topic: kafka.DefaultPrefix + topic.String(),
						NumPartitions: 2, ReplicationFactor: made.replicas,
						ConfigEntries: []segmentio.ConfigEntry{{ConfigName: "min.insync.replicas",
							ConfigValue: made.confirm}}})
			}
			transport := &segmentio.Transport{}
			defer transport.CloseIdleConnections()
			client := &segmentio.Client{Addr: segmentio.TCP(brokers...), Transport: transport}
			if _, err := client.CreateTopics(t.Context(), request); err != nil {
				t.Fatal(err)
			}
			for _, asked := range []int{0, 3} {
				told := &bytes.Buffer{}
				ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
				log, err := kafka.Open(ctx,
					kafka.Config{Brokers: brokers, Partitions: 2, Replicas: asked,
						Logger: slog.New(slog.NewTextHandler(told, nil))})
				cancel()
				if log != nil {
					_ = log.Close()
				}
				switch {
				case made.want == "" || asked == 0:
					if err != nil ||
						strings.Contains(told.String(), "may lose records") != (made.want != "") ||
						!strings.Contains(told.String(), made.want) {
						t.Errorf("%d asked: %v, %s", asked, err, told)
					}
				case err == nil || !strings.Contains(err.Error(), made.want) ||
					ctx.Err() == context.DeadlineExceeded:
					t.Errorf("%d asked: %v", asked, err)
				}
			}
		})
	}
}
