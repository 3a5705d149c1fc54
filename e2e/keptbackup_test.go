package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"shoal.dev/shoal/e2e/suite"
	"shoal.dev/shoal/testkit/process"
)

// kept returns the backups that a product has taken on its own, newest first.
func kept(s *suite.Service) (names []string) {
	s.T.Helper()
	var list []struct{ Name string }
	err := s.Admin().Call(s.T.Context(), "GET", "/api/admin/backups", nil, nil, &list)
	if err != nil {
		s.T.Fatal(err)
	}
	for _, k := range list {
		names = append(names, k.Name)
	}
	return names
}

// TestKeptBackups: a process takes backups on its own, in a directory, and restores the named one.
// After losing its data, a new process finds them there and restores one, with the kept rows or
// without.
func TestKeptBackups(t *testing.T) {
	t.Parallel()
	blobs := filepath.Join(t.TempDir(), "blobs")
	args := append(suite.Fast(), "--blobs", "dir:"+blobs, "--backup-every", "1s",
		"--backup-keep", "1000", "--archive-every", suite.AtOnceEvery.String(),
		"--archive-keep", "10")
	product := &single{data: t.TempDir(), args: args}
	product.Up(t)
	s := &suite.Service{T: t, Product: product, Client: product.Self()}
	s.Fill(s.Client, suite.Plenty)
	before := kept(s)
	name := await(s, func(names []string) bool { return len(names) > len(before)+1 })[0]
	s.Fill(s.Client, suite.Plenty)
	if paid := paidIn(s); paid != 2 {
		t.Fatalf("%d times was paid in", paid)
	}
	suite.Must(s.Command(suite.Within(t, suite.Patience), "cluster", "restore", name))(t)
	if paid := paidIn(s); paid != 1 {
		t.Errorf("%d times was paid in by the backup", paid)
	}
	listed := suite.Must(s.Command(t.Context(), "cluster", "backups"))(t)
	if !strings.Contains(listed, name) {
		t.Errorf("%s is not listed:\n%s", name, listed)
	}
	product.Down(t)

	other := &single{data: t.TempDir(), args: args}
	other.Up(t)
	found := &suite.Service{T: t, Product: other, Client: other.Self()}
	ctx := suite.Within(t, suite.Patience)
	if _, err := found.Command(ctx, "cluster", "restore", name); err == nil {
		t.Error("another cluster's backup is taken without force")
	}
	suite.Must(found.Command(ctx, "cluster", "restore", "--force", name))(t)
	other.Down(t)
	checkKeptRows(t, blobs, name, args)
}

// checkKeptRows puts the kept copy of the rows into an empty directory. Then the backup is no other
// cluster's, and nothing is lacking.
func checkKeptRows(t *testing.T, blobs, name string, args []string) {
	t.Helper()
	copies := suite.Must(filepath.Glob(filepath.Join(blobs, "backups", "cluster", "*.rows")))(t)
	if len(copies) == 0 {
		t.Fatal("no copy of the rows is kept")
	}
	whole := &single{data: t.TempDir(), args: args}
	suite.Must(process.Run(suite.Within(t, suite.Patience), process.Config{Binary: binary(t),
		Data: whole.data}, "cluster", "restore-rows", copies[0]))(t)
	whole.Up(t)
	s := &suite.Service{T: t, Product: whole, Client: whole.Self()}
	suite.Must(s.Command(suite.Within(t, suite.Patience), "cluster", "restore", name))(t)
	whole.Down(t)
	if err := os.Remove(filepath.Join(whole.data, "api-key")); err != nil { // the backup lacks it
		t.Fatal(err)
	}
	s.Restart()
	if paid := paidIn(s); paid != 1 {
		t.Errorf("%d times was paid in by the backup", paid)
	}
	whole.Down(t)
}

// await waits until the backups are as wanted.
func await(s *suite.Service, wanted func(names []string) bool) []string {
	s.T.Helper()
	ctx := suite.Within(s.T, suite.Patience)
	for {
		if names := kept(s); wanted(names) {
			return names
		}
		select {
		case <-ctx.Done():
			s.T.Fatal("no backup is taken")
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// paidIn counts the payments of a test.
func paidIn(s *suite.Service) (paid int) {
	s.T.Helper()
	for _, entry := range suite.Must(s.Ledger(s.T.Context()))(s.T) {
		if entry.AmountMicros == suite.Plenty {
			paid++
		}
	}
	return paid
}
