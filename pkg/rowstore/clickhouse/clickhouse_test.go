package clickhouse_test

import (
	"context"
	"crypto/rand"
	"flag"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"shoal.dev/shoal/pkg/rowstore"
	"shoal.dev/shoal/pkg/rowstore/clickhouse"
	"shoal.dev/shoal/pkg/rowstore/rowstoretest"
)

// server returns the address of a real ClickHouse.
func server(t testing.TB) string {
	t.Helper()
	url := os.Getenv("CLICKHOUSE_URL")
	if url == "" {
		if os.Getenv("SHOAL_CLUSTER_SUITE") == "1" {
			t.Fatal("CLICKHOUSE_URL is not set")
		}
		t.Skip("CLICKHOUSE_URL is not set")
	}
	return url
}

// database returns the name of a database of the test's own, which is dropped when the test ends.
func database(t testing.TB) string {
	t.Helper()
	name := "test_" + rand.Text()
	t.Cleanup(func() { query(t, "DROP DATABASE IF EXISTS `"+name+"`") })
	return name
}

func open(t testing.TB, config clickhouse.Config) *clickhouse.Store {
	t.Helper()
	if config.URL == "" {
		config.URL = server(t)
	}
	store, err := clickhouse.Open(context.Background(), config)
	if err != nil {
		t.Fatal(err)
	}
	return store
}

// TestMain also checks that stores leave no goroutine behind.
func TestMain(m *testing.M) {
	flag.Parse()
	goleak.VerifyTestMain(m, goleak.Cleanup(os.Exit),
		goleak.IgnoreAnyFunction("net/http.(*persistConn).readLoop"),
		goleak.IgnoreAnyFunction("net/http.(*persistConn).writeLoop"),
		goleak.IgnoreAnyFunction("os/exec.(*Cmd).Wait")) // a server that a test has restarted
}

func TestConformance(t *testing.T) {
	server(t)
	// A step of a random test takes a hundred times as long as within one process.
	checks := flag.Lookup("rapid.checks")
	if checks.Value.String() == checks.DefValue {
		if err := checks.Value.Set("20"); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = checks.Value.Set(checks.DefValue) })
	}
	rowstoretest.Run(t, func(t *testing.T) rowstore.Store {
		t.Parallel() // each has its own database, and mostly waits for the server
		return open(t, clickhouse.Config{Database: database(t), Node: "test"})
	})
}

// query queries the server directly.
func query(t testing.TB, statement string) string {
	t.Helper()
	answer, err := http.Post(server(t), "text/plain", strings.NewReader(statement))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s, %v", statement, text, err)
	}
	return strings.TrimSpace(string(text))
}
