package controlplane

import (
	"testing"

	"shoal.dev/shoal/controlplane/client"
)

// BenchmarkFresh is a linearizable read on a leader that votes alone.
func BenchmarkFresh(b *testing.B) {
	r := serve(b, testConfig(b, b.TempDir()))
	for b.Loop() {
		if _, err := r.Fresh(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkDo is one small command at a time, durable.
func BenchmarkDo(b *testing.B) {
	r := serve(b, testConfig(b, b.TempDir()))
	for b.Loop() {
		if _, err := r.Do(b.Context(), client.TouchKeys{}, nil); err != nil {
			b.Fatal(err)
		}
	}
}
