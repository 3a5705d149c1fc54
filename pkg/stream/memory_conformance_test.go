package stream_test

import (
	"testing"

	"go.uber.org/goleak"

	"shoal.dev/shoal/pkg/stream"
	"shoal.dev/shoal/pkg/stream/streamtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestMemoryConformance(t *testing.T) {
	for name, config := range map[string]stream.Config{
		"default bounds": {Partitions: 8},
		"tight":          {Partitions: 4, MaxRecords: 32},
	} {
		t.Run(name, func(t *testing.T) {
			streamtest.Run(t, func(t *testing.T) stream.Log { return newMemory(t, config) })
		})
	}
}

func newMemory(t *testing.T, config stream.Config) *stream.Memory {
	t.Helper()
	log, err := stream.NewMemory(config)
	if err != nil {
		t.Fatal(err)
	}
	return log
}
