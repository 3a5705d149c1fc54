//go:build linux

package cluster

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"shoal.dev/shoal/e2e/suite"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/testkit/cluster"
	"shoal.dev/shoal/testkit/synthweb"
)

// Bounds of the histories.
const (
	historyClients = 4 // of each kind
	historyObjects = 3 // accounts, and scrapers
	historyTime    = 25 * time.Second
	betweenKills   = 6 * time.Second
	checkWithin    = 2 * time.Minute
)

// history is what concurrent clients did and which answers they got.
type history struct {
	began time.Time
	mu    sync.Mutex
	ops   []porcupine.Operation
}

// note adds an operation that began at a time and has just been answered. Unanswered operations are
// not recorded: clients repeat each change, under one idempotency key, until it is answered.
func (h *history) note(client int, began time.Time, input, output any) {
	now := time.Since(h.began)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ops = append(h.ops, porcupine.Operation{ClientId: client, Input: input,
		Call:   int64(began.Sub(h.began)),
		Output: output, Return: int64(now)})
}

// check requires an order in which a single client would have got the same answers.
func (h *history) check(t *testing.T, name string, m porcupine.Model) {
	t.Helper()
	if len(h.ops) == 0 {
		t.Fatalf("%s: nobody did anything", name)
	}
	result, info := porcupine.CheckOperationsVerbose(m, h.ops, checkWithin)
	t.Logf("%s: %d operations: %v", name, len(h.ops), result)
	if result != porcupine.Ok {
		path := filepath.Join(directory(t), name+".html")
		t.Errorf("%s: the history is %v; %s shows it, %v", name, result, path,
			porcupine.VisualizePath(m, info, path))
	}
}

// partition groups the operations by object.
func partition[I any](object func(I) int) func([]porcupine.Operation) [][]porcupine.Operation {
	return func(ops []porcupine.Operation) [][]porcupine.Operation {
		of := map[int][]porcupine.Operation{}
		for _, op := range ops {
			at := object(op.Input.(I))
			of[at] = append(of[at], op)
		}
		var parts [][]porcupine.Operation
		for _, part := range of {
			parts = append(parts, part)
		}
		return parts
	}
}

// Keys: a minted key is valid until it is revoked, and never after.

type keyInput struct {
	key  int
	kind string // mint, use, revoke
}

func keysModel() porcupine.Model {
	const none, good, revoked = 0, 1, 2
	return porcupine.Model{
		Partition: partition(func(in keyInput) int { return in.key }),
		Init:      func() any { return none },
		Step: func(state, input, output any) (bool, any) {
			switch input.(keyInput).kind {
			case "mint":
				return state == none, good
			case "use":
				return output.(bool) == (state == good), state
			}
			return state != none, revoked // a repeated revocation may report that it is missing
		},
	}
}

// Wallet: a read returns the sum of the adjustments before it.

type walletInput struct {
	account int
	add     int64 // 0: a read
}

func walletModel() porcupine.Model {
	return porcupine.Model{
		Partition: partition(func(in walletInput) int { return in.account }),
		Init:      func() any { return int64(0) },
		Step: func(state, input, output any) (bool, any) {
			if in := input.(walletInput); in.add != 0 {
				return true, state.(int64) + in.add
			}
			return output.(int64) == state.(int64), state
		},
	}
}

// Runs: a scraper has at most one open run, and a stop ends it at once.

type runInput struct {
	scraper int
	kind    string // launch, stop, read
}

type runState struct {
	runs int
	live bool
}

func runsModel() porcupine.Model {
	return porcupine.Model{
		Partition: partition(func(in runInput) int { return in.scraper }),
		Init:      func() any { return runState{} },
		Step: func(state, input, output any) (bool, any) {
			s := state.(runState)
			switch input.(runInput).kind {
			case "launch":
				if output.(bool) {
					return !s.live, runState{s.runs + 1, true}
				}
				return s.live, s
			case "stop":
				return true, runState{s.runs, false}
			}
			return output.(runState) == s, s
		},
	}
}

// TestTheModelsRefuse shows that the models reject wrong histories.
func TestTheModelsRefuse(t *testing.T) {
	in := func(call, end int64, input, output any) porcupine.Operation {
		return porcupine.Operation{Input: input, Output: output, Call: call, Return: end}
	}
	for name, wrong := range map[string]struct {
		model porcupine.Model
		ops   []porcupine.Operation
	}{
		"a revoked key is good": {keysModel(),
			[]porcupine.Operation{in(0, 1, keyInput{1, "mint"}, true),
				in(2, 3, keyInput{1, "revoke"}, true), in(4, 5, keyInput{1, "use"}, true)}},
		"a minted key is refused": {keysModel(),
			[]porcupine.Operation{in(0, 1, keyInput{1, "mint"}, true),
				in(2, 3, keyInput{1, "use"}, false)}},
		"an adjustment is lost": {walletModel(),
			[]porcupine.Operation{in(0, 1, walletInput{1, 5}, nil),
				in(2, 3, walletInput{1, 0}, int64(0))}},
		"an adjustment comes twice": {walletModel(),
			[]porcupine.Operation{in(0, 1, walletInput{1, 5}, nil),
				in(2, 3, walletInput{1, 0}, int64(10))}},
		"two runs are open": {runsModel(),
			[]porcupine.Operation{in(0, 1, runInput{1, "launch"}, true),
				in(2, 3, runInput{1, "launch"}, true)}},
		"a stopped run is open": {runsModel(),
			[]porcupine.Operation{in(0, 1, runInput{1, "launch"}, true),
				in(2, 3, runInput{1, "stop"}, nil),
				in(4, 5, runInput{1, "read"}, runState{1, true})}},
	} {
		if porcupine.CheckOperations(wrong.model, wrong.ops) {
			t.Errorf("%s, and nobody notices", name)
		}
	}
}

// clients is everything that happens concurrently.
type clients struct {
	c        *cluster.Cluster
	admin    suite.Client
	accounts []suite.Client
	refs     []string
	scrapers []string

	keys, wallets, runs history
	mu                  sync.Mutex
	minted              []mintedKey // that may be used
	nextKey             int
}

type mintedKey struct {
	number     int
	id, secret string
	account    int
}

// TestHistories has clients mint, use and revoke keys, move money, launch and stop runs on three
// API servers. Meanwhile leaders are killed one after the other. All answers must be linearizable.
func TestHistories(t *testing.T) {
	t.Parallel()
	network := newNetwork(t)
	web := newWeb(t, network, synthweb.Config{Hosts: historyObjects, PagesPerHost: 1,
		ChainPages: 200,
		Mix:        synthweb.Listings(), PageBytes: []int{3000}})
	c := newCluster(t, network, cluster.Layout(3, 1, 1, 1, 3), []string{"--host-rate", "0.5"}, web)
	start(t, c)
	setup := suite.Within(t, settleTime)
	h := &clients{c: c, admin: clientOf(c, suite.Must(mint(setup, c, "--admin"))(t))}
	h.prepare(setup, t, web)
	// Nothing begins once the time is up; operations in progress are answered.
	whole := suite.Within(t, aboutGoal)
	ctx, cancel := context.WithTimeout(whole, historyTime)
	defer cancel()
	now := time.Now()
	h.keys.began, h.wallets.began, h.runs.began = now, now, now
	work := map[string]func(context.Context, int, *rand.Rand) error{"keys": h.useKeys,
		"wallet": h.moveMoney, "runs": h.runScrapers}
	failed := make(chan error, len(work)*historyClients)
	var busy sync.WaitGroup
	number := 0
	for name, do := range work {
		for range historyClients {
			number++
			client := number
			busy.Go(func() {
				random := rand.New(rand.NewPCG(*faultSeed, uint64(client)))
				for ctx.Err() == nil {
					if err := do(whole, client, random); err != nil {
						failed <- fmt.Errorf("%s: %w", name, err)
						return
					}
				}
			})
		}
	}
	killed := killLeaders(ctx, t, c)
	busy.Wait()
	close(failed)
	for err := range failed {
		t.Error(err)
	}
	if killed == 0 {
		t.Error("no leader was killed")
	}
	h.keys.check(t, "keys", keysModel())
	h.wallets.check(t, "wallet", walletModel())
	h.runs.check(t, "runs", runsModel())
	if err := c.SameState(suite.Within(t, settleTime)); err != nil {
		t.Error(err)
	}
}

// killLeaders kills one leader after the other and starts each again, until ctx ends.
func killLeaders(ctx context.Context, t *testing.T, c *cluster.Cluster) (killed int) {
	for {
		select {
		case <-ctx.Done():
			return killed
		case <-time.After(betweenKills):
		}
		leader, err := c.Leader(ctx)
		if err != nil {
			return killed
		}
		leader.Kill()
		killed++
		if err := leader.Start(); err != nil {
			t.Error(err)
		}
	}
}

func (h *clients) prepare(ctx context.Context, t *testing.T, web *synthweb.Web) {
	t.Helper()
	i := 0
	for address := range web.URLs(historyObjects) {
		who := clientOf(h.c, suite.Must(mint(ctx, h.c, "--customer",
			fmt.Sprintf("history%d", i)))(t))
		h.accounts = append(h.accounts, who)
		h.refs = append(h.refs, suite.Must(who.Whoami(ctx))(t))
		group := suite.Must(who.PutGroup(ctx, "group"))(t)
		next := suite.NextLink()
		h.scrapers = append(h.scrapers,
			suite.Must(who.PutScraper(ctx, suite.Scraper{GroupRef: group, Scraper: model.Scraper{
				Name: "chain", Type: model.MultipleProducts, ItemsConfig: synthweb.ItemFields(),
				SourceConfig: model.SourceConfig{URL: address, Pagination: &next}}}))(t))
		i++
	}
	// Accounts with watched wallets do not crawl, and accounts that crawl are not watched.
	for i := range historyObjects {
		who := clientOf(h.c, suite.Must(mint(ctx, h.c, "--customer", fmt.Sprintf("saver%d", i)))(t))
		h.refs = append(h.refs, suite.Must(who.Whoami(ctx))(t))
		h.accounts = append(h.accounts, who)
		if err := h.admin.Adjust(ctx, h.refs[i], suite.Plenty); err != nil {
			t.Fatal(err)
		}
	}
}

func (h *clients) moveMoney(ctx context.Context, client int, random *rand.Rand) error {
	account := historyObjects + random.IntN(historyObjects)
	begin := time.Now()
	if random.IntN(2) == 0 {
		wallet, err := h.accounts[account].Wallet(ctx)
		if err == nil {
			h.wallets.note(client, begin, walletInput{account: account}, wallet.BalanceMicros)
		}
		return permanent(err)
	}
	key, micros := suite.NewKey(), 1+random.Int64N(1000)
	err := again(ctx, "adjustment", func(ctx context.Context) error {
		return h.admin.Again(key).Adjust(ctx, h.refs[account], micros)
	})
	h.wallets.note(client, begin, walletInput{account: account, add: micros}, nil)
	return err
}

// permanent returns nil for errors of calls that may be repeated.
func permanent(err error) error {
	if err == nil || transient(err) {
		return nil
	}
	return err
}

func (h *clients) useKeys(ctx context.Context, client int, random *rand.Rand) error {
	h.mu.Lock()
	known := len(h.minted)
	var key mintedKey
	if known > 0 {
		key = h.minted[random.IntN(known)]
	}
	h.mu.Unlock()
	switch {
	case known < 4:
		return h.mintKey(ctx, client, random.IntN(historyObjects))
	case random.IntN(8) == 0:
		return h.revoke(ctx, client, key)
	}
	begin, who := time.Now(), h.accounts[key.account]
	who.Token = key.secret
	_, err := who.Whoami(ctx)
	problem := (*suite.Problem)(nil)
	switch {
	case err == nil:
		h.keys.note(client, begin, keyInput{key.number, "use"}, true)
	case errors.As(err, &problem) && problem.Status == http.StatusUnauthorized:
		h.keys.note(client, begin, keyInput{key.number, "use"}, false)
	default:
		return permanent(err)
	}
	return nil
}

// mintKey mints a key. If its answer is lost, nobody owns the key.
func (h *clients) mintKey(ctx context.Context, client, account int) error {
	var made struct{ ID, Key string }
	begin := time.Now()
	err := h.accounts[account].Call(ctx, http.MethodPut, "/api/key/generate",
		url.Values{"name": {"history"}, "scope": {string(model.ScopeUser)}}, nil, &made)
	if err != nil {
		return permanent(err)
	}
	h.mu.Lock()
	h.nextKey++
	number := h.nextKey
	h.minted = append(h.minted,
		mintedKey{number: number, id: made.ID, secret: made.Key, account: account})
	h.mu.Unlock()
	h.keys.note(client, begin, keyInput{number, "mint"}, true)
	return nil
}

// revoke revokes a key. Others may go on using it for a while, and must be refused.
func (h *clients) revoke(ctx context.Context, client int, key mintedKey) error {
	begin := time.Now()
	err := again(ctx, "revocation", func(ctx context.Context) error {
		err := h.accounts[key.account].Call(ctx, http.MethodDelete, "/api/key/"+key.id, nil, nil,
			nil)
		if problem := (*suite.Problem)(nil); errors.As(err, &problem) &&
			problem.Status == http.StatusNotFound {
			return nil
		}
		return err
	})
	h.keys.note(client, begin, keyInput{key.number, "revoke"}, true)
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.minted) > 8 { // forget the oldest
		h.minted = h.minted[1:]
	}
	return err
}

func (h *clients) runScrapers(ctx context.Context, client int, random *rand.Rand) error {
	at := random.IntN(historyObjects)
	who, scraper, begin, key := h.accounts[at], h.scrapers[at], time.Now(), suite.NewKey()
	switch random.IntN(5) {
	case 0:
		launched := true
		err := again(ctx, "launch", func(ctx context.Context) error {
			_, err := who.Again(key).RunScraper(ctx, scraper)
			launched = suite.CodeOf(err) != "scraper_already_running"
			if !launched {
				return nil
			}
			return err
		})
		h.runs.note(client, begin, runInput{at, "launch"}, launched)
		return err
	case 1:
		err := again(ctx, "stop",
			func(ctx context.Context) error { return who.Again(key).StopRun(ctx, scraper) })
		h.runs.note(client, begin, runInput{at, "stop"}, nil)
		return err
	}
	jobs, err := who.Jobs(ctx, scraper)
	if err != nil {
		return permanent(err)
	}
	read := runState{runs: len(jobs)}
	if len(jobs) > 0 {
		read.live = !model.JobState(jobs[0].State).Final()
	}
	h.runs.note(client, begin, runInput{at, "read"}, read)
	return nil
}
