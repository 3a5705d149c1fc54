package clickhouse

import (
	"context"
	"crypto/rand"
	"os"
	"testing"
	"time"
)

// A lock that a dead process left is held until it is old, and then broken by one of those that wait.
func TestBreakLock(t *testing.T) {
	url := os.Getenv("CLICKHOUSE_URL")
	if url == "" {
		if os.Getenv("SHOAL_CLUSTER_SUITE") == "1" {
			t.Fatal("CLICKHOUSE_URL is not set")
		}
		t.Skip("CLICKHOUSE_URL is not set")
	}
	s, err := Open(t.Context(), Config{URL: url, Database: "test_" + rand.Text(), Node: "test"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.exec(context.Background(), callTimeout, "DROP DATABASE `"+s.db+"`"); err != nil {
			t.Error(err)
		}
		_ = s.Close()
	}()
	if err := s.lock(t.Context()); err != nil {
		t.Fatal(err)
	}
	ended, cancel := context.WithTimeout(t.Context(), 2*lockPause)
	defer cancel()
	if err := s.lock(ended); err == nil {
		t.Fatal("the lock was taken twice")
	}
	if err := s.breakLock(t.Context(), -time.Minute); err != nil {
		t.Fatal(err)
	}
	if err := s.lock(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.unlock(t.Context()); err != nil {
		t.Fatal(err)
	}
}
