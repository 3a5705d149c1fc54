// Command go launches a run over the addresses of a file, watches it, and prints its rows: go LIST
// NAME. It uses only the API's published shapes and the standard library.
package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"strings"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: go LIST NAME")
		os.Exit(2)
	}
	shoal := service{server: os.Getenv("SHOAL_SERVER"), key: os.Getenv("SHOAL_KEY")}
	if err := shoal.crawl(ctx, os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// service is a Shoal server, and an API key for it.
type service struct{ server, key string }

// crawl runs a list and prints its rows.
func (s service) crawl(ctx context.Context, list, name string) error {
	text, err := os.ReadFile(list)
	if err != nil {
		return err
	}
	job, err := s.launch(ctx, strings.Fields(string(text)), name)
	if err != nil {
		return err
	}
	if err := s.watch(ctx, job); err != nil {
		return err
	}
	return s.rows(ctx, job)
}

// launch starts a run and returns its id. The same name reuses the same group.
func (s service) launch(ctx context.Context, urls []string, name string) (job string, err error) {
	var group struct{ ID string }
	if err := s.ask(ctx, "PUT", "/api/scraper/group", name, map[string]any{"name": name},
		&group); err != nil {
		return "", err
	}
	var run struct{ JobID string }
	err = s.ask(ctx, "POST", "/api/scraper/url-list-run", "", map[string]any{
		"groupId": group.ID, "name": name, "urls": urls,
		"itemsConfig": []map[string]string{{"name": "title", "selector": "h1", "kind": "TEXT"}},
	}, &run)
	return run.JobID, err
}

// mostBreaks is how often in a row a stream may break without a frame.
const mostBreaks = 30

// watch follows a run to its end, and fails unless that is SUCCESS. If a stream breaks, the next
// one continues after the last frame.
func (s service) watch(ctx context.Context, job string) error {
	last := "" // id of the last frame
	for breaks := 0; ; breaks++ {
		before := last
		state, err := s.follow(ctx, job, &last)
		switch {
		case state == "SUCCESS":
			return nil
		case state == "FAILED" || state == "CANCELLED":
			return fmt.Errorf("the run ended %s", state)
		case last != before:
			breaks = 0
		case breaks == mostBreaks:
			return fmt.Errorf("the stream breaks off: %w", err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Second):
		}
	}
}

// follow reads one stream to its end, and returns the last reported state.
func (s service) follow(ctx context.Context, job string, last *string) (state string, err error) {
	stream, err := s.call(ctx, "GET", "/api/scraper-job-status/"+job+"/stream", nil,
		"Last-Event-ID", *last)
	if err != nil {
		return "", err
	}
	defer func() { _ = stream.Close() }()
	lines := bufio.NewScanner(stream)
	for lines.Scan() {
		if id, isID := strings.CutPrefix(lines.Text(), "id: "); isID {
			*last = id
		}
		if text, isData := strings.CutPrefix(lines.Text(), "data: "); isData {
			fmt.Fprintln(os.Stderr, text)
			var frame struct{ State string }
			if err := json.Unmarshal([]byte(text), &frame); err != nil {
				return "", err
			}
			state = frame.State
		}
	}
	return state, cmp.Or(lines.Err(), io.ErrUnexpectedEOF)
}

// rows prints every row of a run, page by page.
func (s service) rows(ctx context.Context, job string) error {
	for cursor := ""; ; {
		var page struct {
			Items      []json.RawMessage
			NextCursor string
		}
		query := url.Values{"jobId": {job}, "limit": {"1000"}, "cursor": {cursor}}
		if err := s.ask(ctx, "GET", "/api/scraper/data?"+query.Encode(), "", nil,
			&page); err != nil {
			return err
		}
		for _, row := range page.Items {
			fmt.Printf("%s\n", row)
		}
		if cursor = page.NextCursor; cursor == "" {
			return nil
		}
	}
}

// ask makes a call and decodes its answer.
func (s service) ask(ctx context.Context, method, path, key string, body, answer any) error {
	content, err := s.call(ctx, method, path, body, "Idempotency-Key", key)
	if err != nil {
		return err
	}
	defer func() { _ = content.Close() }()
	return json.NewDecoder(content).Decode(answer)
}

// call makes a call with a header, unless that is empty. It fails without a success status.
func (s service) call(ctx context.Context, method, path string, body any,
	header, value string) (io.ReadCloser, error) {
	var content io.Reader
	if body != nil {
		encoded, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		content = bytes.NewReader(encoded)
	}
	request, err := http.NewRequestWithContext(ctx, method, s.server+path, content)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+s.key)
	request.Header.Set("Content-Type", "application/json")
	if value != "" {
		request.Header.Set(header, value)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	if answer.StatusCode >= 300 {
		defer func() { _ = answer.Body.Close() }()
		problem, err := io.ReadAll(io.LimitReader(answer.Body, 1<<20))
		if err != nil {
			return nil, err
		}
		return nil, fmt.Errorf("%s %s: %s", method, path, problem)
	}
	return answer.Body, nil
}
