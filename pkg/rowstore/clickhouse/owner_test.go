package clickhouse_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"regexp"
	"sync"
	"testing"

	"shoal.dev/shoal/pkg/rowstore/clickhouse"
)

// TestClaim: a database belongs to the first one that claims it, until another one takes it.
func TestClaim(t *testing.T) {
	c := newCluster(t)
	first, second := c.open(nil), c.open(nil)
	for i, step := range []struct {
		store *clickhouse.Store
		owner string
		take  bool
		want  string
	}{
		{first, "a1", false, "a1"}, {second, "a1", false, "a1"}, {second, "b2", false, "a1"},
		{second, "b2", true, "b2"},
		{first, "a1", false, "b2"}, {first, "b2", false, "b2"},
	} {
		if whose, err := step.store.Claim(t.Context(), step.owner, step.take); err != nil ||
			whose != step.want {
			t.Errorf("step %d: the database is %q's, %v; want %q's", i, whose, err, step.want)
		}
	}
}

// TestClaimAtOnce: of many who claim a database at once, one gets it, and all learn who.
func TestClaimAtOnce(t *testing.T) {
	c := newCluster(t)
	owners := []string{"a", "b", "c", "d"}
	got := make([]string, len(owners))
	var claims sync.WaitGroup
	for i, owner := range owners {
		store := c.open(nil)
		claims.Go(func() {
			var err error
			if got[i], err = store.Claim(t.Context(), owner, false); err != nil {
				t.Error(err)
			}
		})
	}
	claims.Wait()
	for _, whose := range got {
		c.equal("owner", got[0], whose)
	}
}

// TestDatabaseThatIsThereIsLeftAlone: a role that may not create or change tables works with a
// database that another one has made and claimed.
func TestDatabaseThatIsThereIsLeftAlone(t *testing.T) {
	db := database(t)
	maker := open(t, clickhouse.Config{URL: server(t), Database: db})
	if _, err := maker.Claim(t.Context(), "a1", false); err != nil {
		t.Fatal(err)
	}
	target, err := url.Parse(server(t))
	if err != nil {
		t.Fatal(err)
	}
	target.Path = ""
	onward := httputil.NewSingleHostReverseProxy(target)
	changes := regexp.MustCompile(`(?i)^\s*(CREATE|ALTER|DROP|RENAME|INSERT|DELETE)\b`)
	strict := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || changes.Match(body) || changes.MatchString(r.URL.Query().Get("query")) {
			w.Header().Set("X-ClickHouse-Exception-Code", "497")
			w.WriteHeader(http.StatusForbidden)
			_, _ = io.WriteString(w, "Code: 497. DB::Exception: fetcher: Not enough privileges. "+
				"(ACCESS_DENIED)")
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		onward.ServeHTTP(w, r)
	}))
	defer strict.Close()
	if err := maker.Close(); err != nil {
		t.Fatal(err)
	}
	store := open(t, clickhouse.Config{URL: strict.URL, Database: db})
	if whose, err := store.Claim(t.Context(), "a1", false); err != nil || whose != "a1" {
		t.Errorf("%q, %v", whose, err)
	}
	if _, err := store.Claim(t.Context(), "a1", true); err == nil {
		t.Error("the server takes changes: nothing was seen")
	}
	if err := store.Close(); err != nil {
		t.Error(err)
	}
}
