package admin_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"shoal.dev/shoal/apiserver"
	"shoal.dev/shoal/apiserver/internal/apitest"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
)

// cluster is a fake operator.
type cluster struct {
	state           string
	rows            string // "": the row store has backups of its own
	fails           error  // of Backup, before anything is written
	breaks          error  // of Backup, after everything is written
	forced, revived bool
}

func (c *cluster) Backup(_ context.Context, to io.Writer) error {
	if c.fails != nil {
		return c.fails
	}
	if _, err := io.WriteString(to, c.state); err != nil {
		return err
	}
	return c.breaks
}

func (c *cluster) RowsBytes(context.Context) (int64, error) {
	if c.rows == "" {
		return 0, fault.New(fault.NotFound, "it has backups of its own")
	}
	return int64(len(c.rows)), c.fails
}

func (c *cluster) BackupRows(_ context.Context, to io.Writer) error {
	_, err := io.WriteString(to, c.rows)
	return err
}

func (c *cluster) Restore(_ context.Context, from io.Reader,
	how client.RestoreOptions) (client.Restored, error) {
	data, err := io.ReadAll(from)
	switch {
	case err != nil:
		return client.Restored{}, err
	case string(data) == "other" && !how.Force:
		return client.Restored{}, fault.New(fault.OtherCluster, "another cluster's")
	case string(data) == "cut off":
		return client.Restored{}, fault.New(fault.InvalidBackup, "it is cut off")
	}
	c.state, c.forced, c.revived = string(data), how.Force, how.ReviveKeys
	restored := client.Restored{Cluster: ids.ID{1}, Index: 7, Taken: 1_000, Until: 2_000,
		Changes: client.Changes{Undone: 1, KeysKept: 2}}
	if how.Force {
		restored.Lacks = []string{"its history ends"}
	}
	return restored, nil
}

func (c *cluster) Backups(context.Context) ([]client.KeptBackup, error) {
	return []client.KeptBackup{{Name: "newest", Cluster: ids.ID{1}, Taken: time.Unix(2, 0),
		Bytes: 3, Rows: 4}}, c.fails
}

func (c *cluster) RestoreKept(ctx context.Context, name string,
	how client.RestoreOptions) (client.Restored, error) {
	if name == "missing" {
		return client.Restored{}, fault.New(fault.NotFound, "there is no backup %q", name)
	}
	return c.Restore(ctx, strings.NewReader(name), how)
}

func (c *cluster) RemoveNode(_ context.Context, node string) error {
	switch node {
	case "alive":
		return fault.New(fault.NodeAlive, "it is there")
	case "last":
		return fault.New(fault.QuorumAtRisk, "no majority")
	case "gone":
		return nil
	}
	return fault.New(fault.NotFound, "there is no node %q", node)
}

func startOperated(t *testing.T, c *cluster) *apitest.Server {
	return apitest.Start(t, func(config *apiserver.Config) { config.Operator = c })
}

func TestRemoveNode(t *testing.T) {
	s := startOperated(t, &cluster{})
	remove := func(name string) string { return "DELETE /api/admin/nodes/" + name }
	s.Run(t,
		apitest.Scenario{Name: "a key is no admin", As: apitest.User, Do: remove("gone"),
			Status: 401, Code: "unauthorized"},
		apitest.Scenario{Name: "gone", As: apitest.Admin, Do: remove("gone"), Status: 204},
		apitest.Scenario{Name: "alive", As: apitest.Admin, Do: remove("alive"), Status: 409,
			Code: "node_alive"},
		apitest.Scenario{Name: "the last voters", As: apitest.Admin, Do: remove("last"),
			Status: 409, Code: "quorum_at_risk"},
		apitest.Scenario{Name: "unknown", As: apitest.Admin, Do: remove("x"), Status: 400,
			Code: "not_found"},
	)
}

func TestBackup(t *testing.T) {
	c := &cluster{state: strings.Repeat("the state ", 100_000)}
	s := startOperated(t, c)
	const path = "GET /api/admin/backup"
	s.Run(t,
		apitest.Scenario{Name: "a key is no admin", As: apitest.User, Do: path, Status: 401,
			Code: "unauthorized"},
		apitest.Scenario{Name: "whole", As: apitest.Admin, Do: path, Status: 200,
			Headers: map[string]string{"Content-Type": "application/octet-stream",
				"Cache-Control": "no-store"},
			Check: func(t *testing.T, a apitest.Answer) {
				if string(a.Body) != c.state {
					t.Errorf("%d bytes came, want %d", len(a.Body), len(c.state))
				}
			}},
	)
	c.fails = fault.New(fault.Unavailable, "no leader")
	s.Run(t, apitest.Scenario{Name: "no leader", As: apitest.Admin, Do: path, Status: 503,
		Code: "unavailable"})
	c.fails, c.breaks = nil, errors.New("the disk is gone")
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet,
		s.URL+"/api/admin/backup", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+s.Secrets[apitest.Admin])
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	if data, err := io.ReadAll(answer.Body); err == nil {
		t.Errorf("a backup that broke off ends like a whole one, after %d bytes", len(data))
	}
}

func TestBackupOfRows(t *testing.T) {
	c := &cluster{rows: strings.Repeat("the rows ", 100_000)}
	s := startOperated(t, c)
	const path = "GET /api/admin/backup/rows"
	s.Run(t,
		apitest.Scenario{Name: "a key is no admin", As: apitest.User, Do: path, Status: 401,
			Code: "unauthorized"},
		apitest.Scenario{Name: "whole", As: apitest.Admin, Do: path, Status: 200,
			Check: func(t *testing.T, a apitest.Answer) {
				if string(a.Body) != c.rows {
					t.Errorf("%d bytes came, want %d", len(a.Body), len(c.rows))
				}
			}},
	)
	c.fails = fault.New(fault.OutOfSpace, "the disk is short")
	s.Run(t, apitest.Scenario{Name: "no room", As: apitest.Admin, Do: path, Status: 503,
		Code: "out_of_space"})
	c.rows = ""
	s.Run(t, apitest.Scenario{Name: "a cluster", As: apitest.Admin, Do: path, Status: 400,
		Code: "not_found"})
}

func TestRestore(t *testing.T) {
	c := &cluster{}
	s := startOperated(t, c)
	const path = "POST /api/admin/restore"
	bytes := map[string]string{"Content-Type": "application/octet-stream"}
	s.Run(t,
		apitest.Scenario{Name: "a key is no admin", As: apitest.User, Do: path, Header: bytes,
			Body: "new", Status: 401,
			Code: "unauthorized"},
		apitest.Scenario{Name: "no file", As: apitest.Admin, Do: path, Body: `{"force":true}`,
			Status: 415,
			Code:   "unsupported_media_type"},
		apitest.Scenario{Name: "cut off", As: apitest.Admin, Do: path, Header: bytes,
			Body: "cut off", Status: 400,
			Code: "invalid_backup"},
		apitest.Scenario{Name: "another cluster's", As: apitest.Admin, Do: path, Header: bytes,
			Body: "other", Status: 409,
			Code: "other_cluster"},
		apitest.Scenario{Name: "whole", As: apitest.Admin, Do: path, Header: bytes, Body: "new",
			Status: 200,
			Has: map[string]any{"clusterId": ids.ID{1}.String(), "index": 7,
				"takenAt":    "1970-01-01T00:00:01.000Z",
				"runsUndone": 1, "rowsUntil": "1970-01-01T00:00:02.000Z", "keysRevoked": 2,
				"warnings": []any{}}},
		apitest.Scenario{Name: "forced", As: apitest.Admin,
			Do: path + "?force=true&reviveKeys=true", Header: bytes, Body: "other", Status: 200,
			Has: map[string]any{"warnings.0": "its history ends"}},
	)
	if c.state != "other" || !c.forced || !c.revived {
		t.Fatalf("restored: %+v", c)
	}
	none := apitest.Start(t)
	for _, do := range []string{path, "GET /api/admin/backup", "DELETE /api/admin/nodes/n"} {
		sc := apitest.Scenario{Name: "not from here: " + do, As: apitest.Admin, Do: do, Status: 503,
			Code: "unavailable"}
		if do == path {
			sc.Header, sc.Body = bytes, "new"
		}
		none.Run(t, sc)
	}
}

func TestKeptBackups(t *testing.T) {
	c := &cluster{}
	s := startOperated(t, c)
	const list = "GET /api/admin/backups"
	restore := func(name string) string { return "POST /api/admin/backups/" + name + "/restore" }
	s.Run(t,
		apitest.Scenario{Name: "a key is no admin", As: apitest.User, Do: list, Status: 401,
			Code: "unauthorized"},
		apitest.Scenario{Name: "nor does it restore", As: apitest.User, Do: restore("newest"),
			Status: 401, Code: "unauthorized"},
		apitest.Scenario{Name: "listed", As: apitest.Admin, Do: list, Status: 200,
			Has: map[string]any{"0.name": "newest", "0.clusterId": ids.ID{1}.String(),
				"0.takenAt": "1970-01-01T00:00:02.000Z", "0.bytes": 3, "0.rowsBytes": 4}},
		apitest.Scenario{Name: "missing", As: apitest.Admin, Do: restore("missing"),
			Body: `{}`, Status: 400, Code: "not_found"},
		apitest.Scenario{Name: "another cluster's", As: apitest.Admin, Do: restore("other"),
			Body: `{}`, Status: 409, Code: "other_cluster"},
		apitest.Scenario{Name: "restored", As: apitest.Admin, Do: restore("newest"),
			Body: `{"reviveKeys":true}`, Status: 200, Has: map[string]any{"index": 7}},
	)
	if c.state != "newest" || c.forced || !c.revived {
		t.Fatalf("restored: %+v", c)
	}
	c.fails = fault.New(fault.Unavailable, "the blob store does not answer")
	s.Run(t, apitest.Scenario{Name: "away", As: apitest.Admin, Do: list, Status: 503,
		Code: "unavailable"})
}
