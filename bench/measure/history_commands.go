package measure

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"shoal.dev/shoal/controlplane/client/historytest"
	"shoal.dev/shoal/testkit/api"
)

// sendCommands replaces groups at a fixed rate, until enough commands were sent during snapshots
// and without them.
func (c *historyCase) sendCommands(ctx context.Context, s *service, point *historyPoint) error {
	sent, err := c.commandsOf(ctx, s)
	if err != nil {
		return err
	}
	sender := &API{WriteRate: c.WriteRate, Connections: liveAtOnce}
	client := &fasthttp.HostClient{Addr: sent.host, MaxConns: sender.Connections,
		MaxIdemponentCallAttempts: 1, ReadTimeout: time.Minute, WriteTimeout: time.Minute}
	defer client.CloseIdleConnections()
	if _, err := sender.send(ctx, client, sent, apiWarmUp); err != nil {
		return err
	}
	c.on.Say("history: commands without and beside snapshots")
	alone, beside := newLatencies(), newLatencies()
	wanted := int64(c.WriteRate * c.Time.Seconds())
	begun, unfinished := time.Now(), false
	for (unfinished || min(alone.kinds[writes].n, beside.kinds[writes].n) < wanted) &&
		time.Since(begun) < turnsWithin {
		before, err := c.snapshotNames()
		if err != nil {
			return err
		}
		found, err := sender.send(ctx, client, sent, c.turn())
		if err != nil {
			return err
		}
		after, err := c.snapshotNames()
		if err != nil {
			return err
		}
		unfinished = underWay(after)
		if underWay(before) || !slices.Equal(before, after) {
			beside.merge(found)
		} else {
			alone.merge(found)
		}
	}
	point.aloneP999 = c.tellCommands(alone, "without snapshots")
	point.snapshotsP999 = c.tellCommands(beside, "beside snapshots")
	if beside.kinds[writes].n == 0 || alone.kinds[writes].n == 0 {
		return fmt.Errorf("--time: snapshots were written all the time, or never")
	}
	return nil
}

// turn is how long commands are sent between two checks for snapshots.
func (c *historyCase) turn() time.Duration { return min(commandTurn, c.Time/4) }

// commandCustomers send commands in turn: each has its own bound on idempotency keys.
const commandCustomers = 16

// commandsOf returns the commands to send.
func (c *historyCase) commandsOf(ctx context.Context, s *service) (*calls, error) {
	at, err := url.Parse(s.Client.Server)
	if err != nil {
		return nil, fmt.Errorf("bench: %w", err)
	}
	sent := &calls{host: at.Host}
	for n := range min(c.Active-1, commandCustomers) {
		customer := n + 1
		group, err := s.who(customer).PutGroup(ctx, "replaced "+api.NewKey())
		if err != nil {
			return nil, err
		}
		body, err := json.Marshal(map[string]any{"id": group, "name": "replaced " + group,
			"dataTable": "rows", "startType": "MANUAL", "shouldMatchProducts": false})
		if err != nil {
			return nil, fmt.Errorf("bench: %w", err)
		}
		sent.of[writes] = append(sent.of[writes], call{name: "replace a group",
			method: fasthttp.MethodPut, path: "/api/scraper/group", body: body,
			token: historytest.Key(customer)})
	}
	return sent, nil
}

// snapshotNames returns the names of the service's snapshots, including one being written.
func (c *historyCase) snapshotNames() ([]string, error) {
	entries, err := os.ReadDir(filepath.Join(c.data, "raft", "snapshots"))
	if err != nil {
		return nil, fmt.Errorf("bench: %w", err)
	}
	names := make([]string, len(entries))
	for i, entry := range entries {
		names[i] = entry.Name()
	}
	return names, nil
}

// underWay says whether a snapshot is being written.
func underWay(names []string) bool {
	return slices.ContainsFunc(names, func(name string) bool {
		return strings.HasSuffix(name, ".tmp")
	})
}

// tellCommands adds a row, and returns the p99.9 in milliseconds.
func (c *historyCase) tellCommands(found *latencies, what string) float64 {
	name := thousands(strconv.Itoa(c.runs)) + " " + what
	found.tellFailed(c.report, name)
	h := &found.kinds[writes]
	c.commands.add(name, float64(h.n), millis(h.quantile(0.5)), millis(h.quantile(0.99)),
		millis(h.quantile(0.999)), millis(h.longest))
	return millis(h.quantile(0.999))
}
