package clickhouse_test

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"shoal.dev/shoal/pkg/rowstore/clickhouse"
)

const rightsFile = "../../../deploy/rights/clickhouse.sql"

// may is what a role may do with a database, from the table in deploy/README.md.
type may struct {
	all     bool
	reads   bool     // every table; otherwise only the schema version
	inserts []string // tables
	deletes []string
	marks   []string // tables whose comment it may write
}

var codeSpan = regexp.MustCompile("`([a-z]+)`")

// documented returns what each role may do.
func documented(t *testing.T) map[string]may {
	t.Helper()
	document, err := os.ReadFile("../../../deploy/README.md")
	if err != nil {
		t.Fatal(err)
	}
	roles := map[string]may{}
	const head = "| role | reads from Kafka | writes to Kafka | ClickHouse |\n"
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
				if strings.Contains(part, "marks") {
					does.marks = append(does.marks, name[1])
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

// grants returns the statements of the file, for a database and users of the test's own.
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

// TestRightsFileSaysWhatTheTableSays compares deploy/rights/clickhouse.sql with the table in
// deploy/README.md. It needs no server with users.
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
				case right == "ALTER MODIFY COMMENT" && table != "*":
					does.marks = append(does.marks, table)
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
			sorted(got.deletes) != sorted(want.deletes) ||
			sorted(got.marks) != sorted(want.marks) {
			t.Errorf("%s is granted %+v, the table says %+v", role, got, want)
		}
	}
}

// allowed reports whether the server did what it was asked; it may refuse only for lack of rights.
func allowed(t *testing.T, role string, err error) bool {
	t.Helper()
	if err != nil && !strings.Contains(err.Error(), "Not enough privileges") {
		t.Errorf("%s: %v", role, err)
	}
	return err == nil
}

// TestRightsOfRoles gives each role the rights of deploy/rights/clickhouse.sql. It can open the
// database and make all its calls, and do nothing else that deploy/README.md does not list. This
// needs a server whose user may create users, or the scripts that start one with roles.
func TestRightsOfRoles(t *testing.T) {
	e := enter(t)
	roles := documented(t)
	r := &rights{cluster: newClusterOf(t, e.name), entrance: e}
	r.as("controlplane", func(s *clickhouse.Store) { // creates the tables
		if whose, err := s.Claim(t.Context(), "cluster1", true); err != nil || whose != "cluster1" {
			t.Errorf("claimed by %q, %v", whose, err)
		}
	})
	names, err := e.ask(t, "", "SELECT name FROM system.tables WHERE database = '"+e.name+
		"' AND engine LIKE '%MergeTree'")
	if err != nil {
		t.Fatal(err)
	}
	for role, may := range roles {
		if !may.all {
			r.hold(role, may, append(strings.Fields(names), "intake", "intakeweekly"))
		}
	}
	for _, role := range []string{"apiserver", "ingest", "billing", "fetcher", "controlplane"} {
		r.as(role, func(s *clickhouse.Store) {
			for _, call := range r.calls(role, s) {
				if err := call.do(t.Context()); err != nil {
					t.Errorf("%s: %s: %v", role, call.method, err)
				}
			}
			r.refuse(role, s)
		})
	}
}

// rights is a database on which the users of all roles have their rights.
type rights struct {
	*cluster
	entrance
}

// as opens the database as a role's user.
func (r *rights) as(role string, use func(s *clickhouse.Store)) {
	r.Helper()
	s := open(r, clickhouse.Config{URL: r.url, Database: r.db, Node: role,
		Username: role + r.suffix, Password: password})
	use(s)
	if err := s.Close(); err != nil {
		r.Errorf("%s: %v", role, err)
	}
}

// hold compares what the server lets a role do with each table with what the role may.
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
			_, err := r.ask(r.T, role+r.suffix, statement)
			if got := allowed(r.T, role, err); got != want {
				r.Errorf("%s: %s: allowed %v, want %v", role, statement, got, want)
			}
		}
	}
	const mark = "weeks" // its comment says where rows are
	_, err := r.ask(r.T, role+r.suffix, "ALTER TABLE "+r.db+"."+mark+" MODIFY COMMENT 'from 0 alone'")
	if got := allowed(r.T, role, err); got != slices.Contains(may.marks, mark) {
		r.Errorf("%s: marks %s: %v", role, mark, got)
	}
}
