package clickhouse_test

import (
	"crypto/rand"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// entrance is a server on which each role has a user, named by the role and a suffix. The user has
// the rights of deploy/rights/clickhouse.sql on a database.
type entrance struct{ url, name, suffix string }

// enter creates the users if the server permits it. Otherwise it starts an engine with roles.
func enter(t *testing.T) entrance {
	t.Helper()
	e := entrance{url: server(t), name: database(t), suffix: "_" + rand.Text()}
	for role := range documented(t) {
		user := role + e.suffix
		_, err := e.ask(t, "", "CREATE USER "+user+" IDENTIFIED BY '"+password+"'")
		if err != nil && strings.Contains(err.Error(), "ACCESS_") {
			return enterByRoles(t)
		} else if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { query(t, "DROP USER "+user) })
	}
	for _, statement := range grants(t, e.name, e.suffix) {
		query(t, statement)
	}
	return e
}

// enterByRoles starts its own engine, which has no users and cannot create any. The engine gets the
// roles, with the same rights, at its start. Requests in a user's name run in a session with only
// that role.
func enterByRoles(t *testing.T) entrance {
	t.Helper()
	commands := os.Getenv("SHOAL_SERVICES")
	if commands == "" {
		const why = "users cannot be made here, and SHOAL_SERVICES names nothing that starts a server"
		if os.Getenv("SHOAL_CLUSTER_SUITE") == "1" {
			t.Fatal(why)
		}
		t.Skip(why)
	}
	const db = "rights"
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "config.xml"), []byte(rolesOf(t, db)),
		0o600); err != nil {
		t.Fatal(err)
	}
	run := func(name string, args ...string) {
		command := exec.Command(filepath.Join(commands, name), args...)
		command.Dir = dir // where the engine looks for config.xml
		command.Env = append(os.Environ(), "SERVICES_DIR="+dir,
			"CLICKHOUSE_PORT="+strconv.Itoa(freePort(t)))
		output, err := os.Create(filepath.Join(dir, name+".txt"))
		if err != nil {
			t.Fatal(err)
		}
		command.Stdout, command.Stderr = output, output // no pipes: the server inherits them
		err = command.Run()
		_ = output.Close()
		if err != nil {
			said, _ := os.ReadFile(output.Name())
			t.Fatalf("%s: %v: %s", name, err, said)
		}
	}
	t.Cleanup(func() { run("down", "clickhouse") })
	run("up", "clickhouse")
	variables, err := os.ReadFile(filepath.Join(dir, "env"))
	if err != nil {
		t.Fatal(err)
	}
	_, address, _ := strings.Cut(string(variables), "CLICKHOUSE_URL=")
	target, err := url.Parse(strings.TrimSpace(address))
	if err != nil {
		t.Fatal(err)
	}
	sessions := httptest.NewServer(&byRole{to: &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(&url.URL{Scheme: target.Scheme, Host: target.Host})
		}}, target: target, has: map[string]bool{}})
	t.Cleanup(sessions.Close)
	return entrance{url: sessions.URL + target.Path, name: db}
}

// rolesOf returns the configuration of an engine with every role of the rights' file, and one user
// that has all of them.
func rolesOf(t *testing.T, db string) string {
	t.Helper()
	rights := map[string]string{"everything": "<query>GRANT ALL ON *.*</query>"}
	for _, statement := range grants(t, db, "") {
		what, roles, _ := strings.Cut(statement, " TO ")
		for role := range strings.SplitSeq(roles, ", ") {
			rights[role] += "<query>" + what + "</query>"
		}
	}
	var roles, names []string
	for role, granted := range rights {
		roles = append(roles, fmt.Sprintf("<%s><grants>%s</grants></%[1]s>", role, granted))
		names = append(names, role)
	}
	return "<clickhouse><user_directories><users_xml><path>config.xml</path></users_xml>" +
		"</user_directories><profiles><default/></profiles><quotas><default/></quotas>" +
		"<roles>" + strings.Join(roles, "") + "</roles><users><default><no_password/>" +
		"<networks><ip>::/0</ip></networks><profile>default</profile><quota>default</quota>" +
		"<grants><query>GRANT " + strings.Join(names, ", ") + "</query></grants>" +
		"</default></users></clickhouse>"
}

func freePort(t *testing.T) int {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	return listener.Addr().(*net.TCPAddr).Port
}

// byRole passes each request to a session of its user's role, one at a time.
type byRole struct {
	to     http.Handler
	target *url.URL

	mu  sync.Mutex
	has map[string]bool // roles that have a session
}

func (b *byRole) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	role := r.Header.Get("X-ClickHouse-User")
	if user, _, basic := r.BasicAuth(); basic {
		role = user
	}
	if role == "" || role == "default" {
		b.to.ServeHTTP(w, r)
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.has[role] {
		first, err := http.Post(b.target.Scheme+"://"+b.target.Host+"/?session_id="+role,
			"text/plain", strings.NewReader("SET ROLE "+role))
		if err != nil || first.StatusCode != http.StatusOK {
			http.Error(w, fmt.Sprintf("no role %s: %v", role, err), http.StatusInternalServerError)
			return
		}
		_ = first.Body.Close()
		b.has[role] = true
	}
	in := r.URL.Query()
	in.Set("session_id", role)
	r.URL.RawQuery = in.Encode()
	b.to.ServeHTTP(w, r)
}

// ask runs a statement on the server as a user; "" is the user of the address.
func (e entrance) ask(t *testing.T, user, statement string) (answer string, err error) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, e.url,
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
