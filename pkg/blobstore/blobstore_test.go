package blobstore_test

import (
	"context"
	"crypto/rand"
	"flag"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"shoal.dev/shoal/pkg/blobstore"
	"shoal.dev/shoal/pkg/blobstore/blobstoretest"
)

// TestMain also checks that stores leave no goroutine behind.
func TestMain(m *testing.M) {
	flag.Parse()
	goleak.VerifyTestMain(m, goleak.Cleanup(os.Exit))
}

// fewer reduces random tests whose steps take a hundred times as long.
func fewer(t *testing.T, count string) {
	checks := flag.Lookup("rapid.checks")
	if checks.Value.String() != checks.DefValue {
		return
	}
	if err := checks.Value.Set(count); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = checks.Value.Set(checks.DefValue) })
}

func TestDirectory(t *testing.T) {
	fewer(t, "20")
	blobstoretest.Run(t, func(t *testing.T) *blobstore.Store { return openIn(t, t.TempDir()) })
}

// TestS3 runs the suite on a real server, in the test's own bucket.
func TestS3(t *testing.T) {
	fewer(t, "5")
	config := server(t)
	blobstoretest.Run(t, func(t *testing.T) *blobstore.Store {
		config := config
		config.Bucket = "test-" + strings.ToLower(rand.Text())
		if err := blobstoretest.MakeBucket(t.Context(), config); err != nil {
			t.Fatal(err)
		}
		return openS3(t, config)
	})
}

// server returns the configuration of a real server.
func server(t *testing.T) blobstore.S3 {
	t.Helper()
	config := blobstore.S3{Endpoint: os.Getenv("S3_URL"), Bucket: os.Getenv("S3_BUCKET"),
		Key: os.Getenv("S3_KEY"), Secret: os.Getenv("S3_SECRET")}
	if config.Endpoint == "" {
		if os.Getenv("SHOAL_CLUSTER_SUITE") == "1" {
			t.Fatal("S3_URL is not set")
		}
		t.Skip("S3_URL is not set")
	}
	return config
}

func openIn(t *testing.T, dir string) *blobstore.Store {
	t.Helper()
	s, err := blobstore.OpenDirectory(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func openS3(t *testing.T, config blobstore.S3) *blobstore.Store {
	t.Helper()
	s, err := blobstore.OpenS3(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// TestS3Refuses: Open reports what a real server refuses.
func TestS3Refuses(t *testing.T) {
	config := server(t)
	for name, change := range map[string]func(*blobstore.S3){
		"no such bucket": func(c *blobstore.S3) { c.Bucket = "test-none" },
		"wrong secret":   func(c *blobstore.S3) { c.Secret = "wrong" },
		"no key":         func(c *blobstore.S3) { c.Key, c.Secret = "", "" },
	} {
		other := config
		change(&other)
		if s, err := blobstore.OpenS3(t.Context(), other); err == nil {
			t.Errorf("%s: it is opened", name)
			_ = s.Close()
		}
	}
}

func TestCheck(t *testing.T) {
	for name, c := range map[string]struct {
		config  blobstore.S3
		refused bool
	}{
		"Amazon":     {blobstore.S3{Bucket: "b", Key: "k", Secret: "s"}, false},
		"own":        {blobstore.S3{Bucket: "b", Endpoint: "http://minio:9000"}, false},
		"no bucket":  {blobstore.S3{Endpoint: "http://minio:9000"}, true},
		"no secret":  {blobstore.S3{Bucket: "b", Key: "k"}, true},
		"no scheme":  {blobstore.S3{Bucket: "b", Endpoint: "minio:9000"}, true},
		"not a host": {blobstore.S3{Bucket: "b", Endpoint: "http://"}, true},
	} {
		if err := c.config.Check(); (err != nil) != c.refused {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestS3AnswersInTime: the first request ends with its context.
func TestS3AnswersInTime(t *testing.T) {
	asked := make(chan struct{}, 100)
	silent := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		asked <- struct{}{}
		<-r.Context().Done()
	}))
	defer silent.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() { <-asked; cancel() }()
	_, err := blobstore.OpenS3(ctx, blobstore.S3{Bucket: "b", Endpoint: silent.URL})
	if err == nil || ctx.Err() == nil {
		t.Errorf("it is opened: %v", err)
	}
}

// TestDirectoriesAreOneProcess: two processes on one directory would remove each other's files.
func TestDirectoriesAreOneProcess(t *testing.T) {
	dir := t.TempDir()
	for range 2 { // closing the first lets the second in
		s, err := blobstore.OpenDirectory(dir)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := blobstore.OpenDirectory(dir); err == nil {
			t.Fatal("it is opened twice")
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestUnfinishedGoes: the unfinished files of a killed process are neither listed nor kept.
func TestUnfinishedGoes(t *testing.T) {
	dir := t.TempDir()
	left := filepath.Join(dir, "uploads", "alice", "a.18b2.tmp")
	if err := os.MkdirAll(filepath.Dir(left), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(left, []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := openIn(t, dir)
	if _, err := os.Stat(left); !os.IsNotExist(err) {
		t.Errorf("it is there: %v", err)
	}
	page, err := s.List(t.Context(), blobstore.Uploads, "", nil)
	if err != nil || len(page.Blobs) != 0 {
		t.Errorf("%+v, %v", page, err)
	}
}
