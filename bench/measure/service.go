package measure

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"shoal.dev/shoal/testkit/api"
	"shoal.dev/shoal/testkit/process"
)

const (
	readyWithin = 5 * time.Minute
	stopWithin  = 30 * time.Second
	plenty      = 1_000_000_000_000 // micros, so that no run of a measure stops for lack of money
)

// service is `shoal serve`, as people run it, with its self-hosting customer.
type service struct {
	*process.Process
	api.Client
	data string
}

// unbounded returns flags for a pace that never delays a host, so that only work is measured.
func unbounded(connections int) []string {
	n := strconv.Itoa(max(connections, 1))
	return []string{"--host-rate", "1e6", "--max-host-rate", "1e6", "--host-connections", n,
		"--max-host-connections", n}
}

// serve starts a service on a data directory, directed to the webs, and waits until it serves.
func (b *Bench) serve(ctx context.Context, data string, env []string, webs []*web,
	args ...string) (*service, error) {
	args = append([]string{"--no-rate-limits", "--egress-allow", "127.0.0.0/8"}, args...)
	for _, w := range webs {
		args = append(args, "--egress-origin", w.origin())
		env = append(env, w.environment()...)
	}
	p, err := process.Start(process.Config{Binary: b.Program, Data: data, Args: args, Env: env})
	if err != nil {
		return nil, err
	}
	ready, cancel := context.WithTimeout(ctx, readyWithin)
	defer cancel()
	if err := p.Ready(ready); err != nil {
		p.Kill()
		return nil, err
	}
	return &service{Process: p, data: data, Client: api.Client{Server: p.Server(), Token: p.Key()}},
		nil
}

// fresh starts a service on an empty directory, with money.
func (b *Bench) fresh(ctx context.Context, env []string, webs []*web, args ...string) (*service,
	error) {
	data, err := b.directory("data")
	if err != nil {
		return nil, err
	}
	s, err := b.serve(ctx, data, env, webs, args...)
	if err != nil {
		return nil, err
	}
	if _, err := s.Command(ctx, "wallet", "adjust", "--micros", strconv.Itoa(plenty), "--note",
		"bench"); err != nil {
		s.Kill()
		return nil, err
	}
	return s, nil
}

// end stops a service and removes its data.
func (s *service) end() error {
	_, err := s.Stop(stopWithin)
	return errors.Join(err, os.RemoveAll(s.data))
}

// admin returns a client with administrator's rights.
func (s *service) admin(ctx context.Context) (api.Client, error) {
	token, err := s.Command(ctx, "token", "--admin")
	who := s.Client
	who.Token = token
	return who, err
}

// launch launches a list run of the order without waiting for it.
func launch(ctx context.Context, o api.Order) (api.Launched, error) {
	query, err := o.Query(ctx)
	if err != nil {
		return api.Launched{}, err
	}
	return o.Who.RunList(ctx, query, o.Body())
}

// crawl makes a list run and waits until every page is stored and charged.
func (s *service) crawl(ctx context.Context, o api.Order) error {
	_, err := s.count(ctx, o)
	return err
}

// deliver is crawl for pages that must not fail: a page that is not fetched would cost nothing.
func (s *service) deliver(ctx context.Context, o api.Order) error {
	failed, err := s.count(ctx, o)
	if err == nil && failed > 0 {
		err = fmt.Errorf("bench: %d of %d pages failed", failed, len(o.URLs))
	}
	return err
}

// count is crawl, but returns how many pages failed.
func (s *service) count(ctx context.Context, o api.Order) (failed int64, err error) {
	run, err := launch(ctx, o)
	if err != nil {
		return 0, err
	}
	job, _, err := s.Finished(ctx, run)
	if err != nil {
		return 0, err
	}
	if job.SuccessLinks+job.ErrorLinks != int64(run.LinksQueued) {
		return 0, fmt.Errorf("bench: the run ended %s with %d of %d pages", job.State,
			job.SuccessLinks+job.ErrorLinks,
			run.LinksQueued)
	}
	return job.ErrorLinks, nil
}

var liveHeap = regexp.MustCompile(`(?m)^# HeapAlloc = (\d+)$`)

// heap returns the live heap of a process after a collection, in bytes; ops is its --ops-listen,
// with --ops-profiles.
func heap(ctx context.Context, ops string) (int64, error) {
	body, err := fetch(ctx, "http://"+ops+"/debug/pprof/heap?gc=1&debug=1")
	if err != nil {
		return 0, err
	}
	found := liveHeap.FindSubmatch(body)
	if found == nil {
		return 0, fmt.Errorf("bench: no HeapAlloc in the heap profile of %s", ops)
	}
	return strconv.ParseInt(string(found[1]), 10, 64)
}

// saveProfile writes a process's profile to a file; which is heap or profile?seconds=N.
func saveProfile(ctx context.Context, ops, which, path string) error {
	body, err := fetch(ctx, "http://"+ops+"/debug/pprof/"+which)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("bench: profile: %w", err)
	}
	if err := os.WriteFile(path, body, 0o644); err != nil {
		return fmt.Errorf("bench: profile: %w", err)
	}
	return nil
}

func fetch(ctx context.Context, address string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, fmt.Errorf("bench: %w", err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, fmt.Errorf("bench: %w", err)
	}
	defer func() { _ = answer.Body.Close() }() // read-only
	body, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("bench: %s answers %s: %w", address, answer.Status, err)
	}
	return body, nil
}

// postQuery sends one statement to ClickHouse.
func postQuery(ctx context.Context, server, statement string) error {
	at, err := url.Parse(server)
	if err != nil {
		return fmt.Errorf("bench: %w", err)
	}
	at.Path = "/" // not a database that may not exist
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, at.String(),
		strings.NewReader(statement))
	if err != nil {
		return fmt.Errorf("bench: %w", err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("bench: clickhouse: %w", err)
	}
	defer func() { _ = answer.Body.Close() }() // read-only
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("bench: clickhouse: %q: %s", statement, answer.Status)
	}
	return nil
}
