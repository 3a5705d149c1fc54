package clickhouse_test

import (
	"crypto/rand"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"shoal.dev/shoal/pkg/rowstore"
	"shoal.dev/shoal/pkg/rowstore/clickhouse"
)

const rightsFile = "../../../deploy/rights/clickhouse.sql"

// may is what a role may do with a database, by the table in deploy/README.md.
type may struct {
	all     bool
	reads   bool     // every table; without it the schema's version alone
	inserts []string // tables
	deletes []string
}

var codeSpan = regexp.MustCompile("`([a-z]+)`")

// documented is what each role may do.
func documented(t *testing.T) map[string]may {
	t.Helper()
	document, err := os.ReadFile("../../../deploy/README.md")
	if err != nil {
		t.Fatal(err)
	}
	roles := map[string]may{}
	const head = "| role | reads of Kafka | writes to Kafka | ClickHouse |\n"
	_, table, _ := strings.Cut(string(document), head)
	_, table, _ = strings.Cut(table, "\n") // the line under the head
	for line := range strings.Lines(table) {
		cells := strings.Split(line, "|")
		if len(cells) != 6 {
			break
		}
		said := cells[4]
		does := may{all: strings.Contains(said, "all on the database"),
			reads: strings.Contains(said, "reads all")}
		for part := range strings.SplitSeq(said, ";") {
			for _, name := range codeSpan.FindAllStringSubmatch(part, -1) {
				if strings.Contains(part, "inserts") {
					does.inserts = append(does.inserts, name[1])
				}
				if strings.Contains(part, "deletes") {
					does.deletes = append(does.deletes, name[1])
				}
			}
		}
		roles[strings.TrimSpace(cells[1])] = does
	}
	if len(roles) != 5 {
		t.Fatalf("the table has the roles %v", slices.Collect(maps.Keys(roles)))
	}
	return roles
}

// grants are the statements of the file, for a database and users of the test's own.
func grants(t *testing.T, db, suffix string) (statements []string) {
	t.Helper()
	file, err := os.ReadFile(rightsFile)
	if err != nil {
		t.Fatal(err)
	}
	bare := regexp.MustCompile(`(?m)^--.*$`).ReplaceAllString(string(file), "")
	for statement := range strings.SplitSeq(bare, ";") {
		what, users, granted := strings.Cut(strings.TrimSpace(statement), " TO ")
		if !granted {
			continue
		}
		users = regexp.MustCompile(`\w+`).ReplaceAllString(users, "${0}"+suffix)
		statements = append(statements, strings.ReplaceAll(what, "shoal.", db+".")+" TO "+users)
	}
	return statements
}

// TestRightsFileSaysWhatTheTableSays holds deploy/rights/clickhouse.sql against the table of
// deploy/README.md, where no server has users to try it with, too.
func TestRightsFileSaysWhatTheTableSays(t *testing.T) {
	told := map[string]may{}
	granted := regexp.MustCompile(`^GRANT (.*) ON db\.(\S+) TO (.*)$`)
	for _, statement := range grants(t, "db", "") {
		parts := granted.FindStringSubmatch(statement)
		if parts == nil {
			if !strings.Contains(statement, " ON system.") {
				t.Errorf("not understood: %s", statement)
			}
			continue
		}
		for role := range strings.SplitSeq(parts[3], ", ") {
			does := told[role]
			for right := range strings.SplitSeq(parts[1], ", ") {
				switch table := parts[2]; {
				case right == "ALL" && table == "*":
					does.all = true
				case right == "SELECT" && table == "*":
					does.reads = true
				case right == "SHOW TABLES", right == "SELECT" && table == "migrations":
				case right == "INSERT" && table != "*":
					does.inserts = append(does.inserts, table)
				case right == "ALTER DELETE" && table != "*":
					does.deletes = append(does.deletes, table)
				default:
					t.Errorf("%s: nothing speaks of %s", statement, right)
				}
			}
			told[role] = does
		}
	}
	sorted := func(names []string) string {
		return strings.Join(slices.Sorted(slices.Values(names)), " ")
	}
	for role, want := range documented(t) {
		got := told[role]
		if got.all != want.all || got.reads != want.reads ||
			sorted(got.inserts) != sorted(want.inserts) ||
			sorted(got.deletes) != sorted(want.deletes) {
			t.Errorf("%s is granted %+v, the table says %+v", role, got, want)
		}
	}
}

// ask has the server carry a statement out as a user, "" for the one of the address.
func ask(t *testing.T, user, statement string) (answer string, err error) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server(t),
		strings.NewReader(statement))
	if err != nil {
		return "", err
	}
	if user != "" {
		request.URL.User = nil
		request.Header.Set("X-ClickHouse-User", user)
		request.Header.Set("X-ClickHouse-Key", password)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", statement, text)
	}
	return strings.TrimSpace(string(text)), err
}

// allowed says whether the server did what it was asked; it refuses for want of rights alone.
func allowed(t *testing.T, role string, err error) bool {
	t.Helper()
	if err != nil && !strings.Contains(err.Error(), "Not enough privileges") {
		t.Errorf("%s: %v", role, err)
	}
	return err == nil
}

// TestRightsOfRoles: with the rights that deploy/rights/clickhouse.sql gives, each role can open
// the database and do its own part, and nothing beside what deploy/README.md says. It needs a
// server whose user may make users; an engine without access management is passed over.
func TestRightsOfRoles(t *testing.T) {
	db, suffix := database(t), "_"+rand.Text()
	roles := documented(t)
	for role := range roles {
		_, err := ask(t, "", "CREATE USER "+role+suffix+" IDENTIFIED BY '"+password+"'")
		if err != nil && strings.Contains(err.Error(), "ACCESS_") {
			t.Skipf("users cannot be made here: %v", err)
		} else if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { query(t, "DROP USER "+role+suffix) })
	}
	for _, statement := range grants(t, db, suffix) {
		query(t, statement)
	}
	r := &rights{cluster: newClusterOf(t, db), suffix: suffix}
	r.as("controlplane", func(s *clickhouse.Store) { // makes the tables
		if whose, err := s.Claim(t.Context(), "cluster1", true); err != nil || whose != "cluster1" {
			t.Errorf("claimed by %q, %v", whose, err)
		}
	})
	tables := strings.Fields(query(t, "SELECT name FROM system.tables WHERE database = '"+db+
		"' AND engine LIKE '%MergeTree'"))
	for role, may := range roles {
		if !may.all {
			r.hold(role, may, append(tables, "intake", "intakeweekly"))
		}
	}
	work := r.works()
	for _, role := range []string{"apiserver", "ingest", "billing", "fetcher", "controlplane"} {
		r.as(role, work[role])
	}
}

// rights is a database that the users of all roles have been granted theirs on.
type rights struct {
	*cluster
	suffix string
}

// as opens the database as a role's user.
func (r *rights) as(role string, use func(s *clickhouse.Store)) {
	r.Helper()
	s := open(r, clickhouse.Config{Database: r.db, Node: role,
		Username: role + r.suffix, Password: password})
	use(s)
	if err := s.Close(); err != nil {
		r.Errorf("%s: %v", role, err)
	}
}

// hold holds what the server lets a role do with each table against what it may.
func (r *rights) hold(role string, may may, tables []string) {
	r.Helper()
	for _, table := range tables {
		name := r.db + "." + table
		reads := may.reads || table == "migrations"
		adds, removes := slices.Contains(may.inserts, table), slices.Contains(may.deletes, table)
		for statement, want := range map[string]bool{
			"SELECT count() FROM " + name:                                 reads,
			"INSERT INTO " + name + " SELECT * FROM " + name + " WHERE 0": adds,
			"ALTER TABLE " + name + " DELETE WHERE 0":                     removes,
			"ALTER TABLE " + name + " UPDATE a = 0 WHERE 0":               false,
			"ALTER TABLE " + name + " ADD COLUMN a UInt8":                 false,
			"TRUNCATE TABLE " + name:                                      false,
			"DROP TABLE " + name:                                          false,
		} {
			_, err := ask(r.T, role+r.suffix, statement)
			if got := allowed(r.T, role, err); got != want {
				r.Errorf("%s: %s: allowed %v, want %v", role, statement, got, want)
			}
		}
	}
}

// works are what each role's process does.
func (r *rights) works() map[string]func(s *clickhouse.Store) {
	ctx, list, dropped := r.Context(), r.ids.New(), r.ids.New()
	must := func(err error) {
		r.Helper()
		if err != nil {
			r.Error(err)
		}
	}
	refused := func(role, what string, err error) {
		r.Helper()
		if allowed(r.T, role, err) {
			r.Errorf("%s may %s", role, what)
		}
	}
	put := func(s *clickhouse.Store) error {
		_, err := s.PutPages(ctx, []rowstore.PageWrite{r.page(0, r.ids.New(), 2)})
		return err
	}
	return map[string]func(s *clickhouse.Store){
		"apiserver": func(s *clickhouse.Store) {
			in, err := s.CreateList(ctx, list)
			must(err)
			_, err = in.Add(ctx, "http://a.test/", "http://a.test/")
			must(err)
			_, err = in.Finish(ctx)
			must(err)
			in, err = s.CreateList(ctx, dropped)
			must(err)
			_, err = in.Add(ctx, "http://a.test/", "http://a.test/")
			must(err)
			must(in.Abort(ctx))
			_, err = s.Horizon(ctx)
			must(err)
			refused("apiserver", "store pages", put(s))
		},
		"ingest": func(s *clickhouse.Store) {
			must(put(s))
			must(s.Expire(ctx, time.Now()))
			_, err := s.CreateList(ctx, r.ids.New())
			refused("ingest", "make lists", err)
		},
		"billing": func(s *clickhouse.Store) {
			counted, err := s.Recount(ctx, r.job.ID)
			must(err)
			r.equal("pages", uint64(1), counted.Delivered)
			refused("billing", "delete a run", s.DeleteJob(ctx, r.job.ID, true))
		},
		"fetcher": func(s *clickhouse.Store) {
			_, err := s.AllLists(ctx)
			refused("fetcher", "read lists", err)
			_, err = s.Recount(ctx, r.job.ID)
			refused("fetcher", "read records", err)
			refused("fetcher", "store pages", put(s))
		},
		"controlplane": func(s *clickhouse.Store) {
			links, err := s.Links(ctx, list, 0, 10)
			must(err)
			r.equal("links", 1, len(links))
			must(s.Seal(ctx, r.job.ID, nil))
			must(s.DeleteJob(ctx, r.job.ID, true))
			must(s.DropList(ctx, list))
			must(s.Expire(ctx, time.Now()))
		},
	}
}
