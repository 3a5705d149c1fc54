package controlplane

import (
	"testing"

	"shoal.dev/shoal/controlplane/client"
)

func benchFresh(b *testing.B, r *running) {
	for b.Loop() {
		if _, err := r.Fresh(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}

func benchDo(b *testing.B, r *running) {
	for b.Loop() {
		if _, err := client.Do(b.Context(), r, client.TouchKeys{}, nil); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkFresh measures a linearizable read on a leader that votes alone.
func BenchmarkFresh(b *testing.B) { benchFresh(b, serve(b, testConfig(b, b.TempDir()))) }

// BenchmarkDo measures small durable commands, one at a time.
func BenchmarkDo(b *testing.B) { benchDo(b, serve(b, testConfig(b, b.TempDir()))) }

// BenchmarkFreshElsewhere measures a linearizable read on a non-voter, with three voters, over
// loopback.
func BenchmarkFreshElsewhere(b *testing.B) { benchFresh(b, newNodes(b, 3, 1).at(3)) }

// BenchmarkDoElsewhere measures small commands from such a node, one at a time.
func BenchmarkDoElsewhere(b *testing.B) { benchDo(b, newNodes(b, 3, 1).at(3)) }
