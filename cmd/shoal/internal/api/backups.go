package api

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// Backup streams the cluster's state to a writer, and returns its length in bytes; the credential
// must be an administrator's. What a failed call has written is not a backup.
func (c *Client) Backup(ctx context.Context, to io.Writer) (int64, error) {
	return c.download(ctx, "/api/admin/backup", to)
}

// BackupRows streams a copy of a single process's row store, like Backup. A cluster answers with
// the code not_found.
func (c *Client) BackupRows(ctx context.Context, to io.Writer) (int64, error) {
	return c.download(ctx, "/api/admin/backup/rows", to)
}

func (c *Client) download(ctx context.Context, path string, to io.Writer) (int64, error) {
	answer, err := c.do(ctx, request{method: http.MethodGet, path: path})
	if err != nil {
		return 0, err
	}
	defer func() { _ = answer.Body.Close() }() // read-only
	n, err := io.Copy(to, answer.Body)
	if err != nil {
		return n, fmt.Errorf("the backup broke off after %d bytes: %w", n, err)
	}
	return n, nil
}

// Restored is the answer to Restore.
type Restored struct {
	ClusterID string `json:"clusterId"`
	Index     uint64 `json:"index"`
	TakenAt   string `json:"takenAt"`

	RunsUndone    int    `json:"runsUndone"`
	RowsUntil     string `json:"rowsUntil"`
	RunsReopened  int    `json:"runsReopened"`
	KeysRevoked   int    `json:"keysRevoked"`
	KeysRevived   int    `json:"keysRevived"`
	KeysGone      int    `json:"keysGone"`
	CustomersGone int    `json:"customersGone"`
	ScrapersGone  int    `json:"scrapersGone"`
	ScrapersBack  int    `json:"scrapersBack"`

	ScrapersReturned  int `json:"scrapersReturned"`
	SchedulesReturned int `json:"schedulesReturned"`

	BalanceMicros int64 `json:"balanceMicros"`
	BeforeMicros  int64 `json:"beforeMicros"`

	Warnings []string `json:"warnings"`
}

// Restore replaces the cluster's state with a backup; the credential must be an administrator's.
func (c *Client) Restore(ctx context.Context, from io.Reader, length int64, force,
	reviveKeys bool) (Restored, error) {
	var restored Restored
	restore := request{method: http.MethodPost, path: "/api/admin/restore",
		query: url.Values{"force": {strconv.FormatBool(force)},
			"reviveKeys": {strconv.FormatBool(reviveKeys)}}, body: from, length: length,
		contentType: "application/octet-stream"}
	answer, err := c.do(ctx, restore)
	if err != nil {
		return restored, doubt(err, restore, 0)
	}
	return restored, decode(answer, &restored)
}

// KeptBackup is a backup in the cluster's blob store.
type KeptBackup struct {
	Name      string `json:"name"`
	ClusterID string `json:"clusterId"`
	TakenAt   string `json:"takenAt"`
	Bytes     int64  `json:"bytes"`
	RowsBytes int64  `json:"rowsBytes"`
}

// Backups lists the backups in the blob store, newest first; the credential must be an
// administrator's.
func (c *Client) Backups(ctx context.Context) (Answer[[]KeptBackup], error) {
	var kept Answer[[]KeptBackup]
	err := c.get(ctx, "/api/admin/backups", nil, &kept)
	return kept, err
}

// RestoreKept restores a backup from the blob store; the credential must be an administrator's.
func (c *Client) RestoreKept(ctx context.Context, name string, force, reviveKeys bool) (Restored,
	error) {
	var restored Restored
	err := c.within(time.Hour).ask(ctx, http.MethodPost,
		"/api/admin/backups/"+url.PathEscape(name)+"/restore",
		map[string]bool{"force": force, "reviveKeys": reviveKeys}, &restored)
	return restored, err
}
