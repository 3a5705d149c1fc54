package telemetry

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Bounds of the operators' server: few clients ask, and each for little.
const (
	opsReadTimeout  = 5 * time.Second
	opsWriteTimeout = 90 * time.Second // a CPU profile takes 30 s by default
	opsIdleTimeout  = time.Minute
	opsMaxHeader    = 16 << 10 // bytes
	opsMaxScrapes   = 4        // at a time
	opsFinish       = 2 * time.Second
	readyWithin     = 2 * time.Second
)

// StateHash is a hash of a node's replicated state. Two nodes of a cluster that have applied the
// same Index have the same Hash.
type StateHash struct {
	Index uint64 `json:"index"` // Raft index of the newest command in it
	Hash  string `json:"hash"`
}

// Ops is what operators may ask of a process, whatever its roles. It is for a port that only they
// can reach: nothing is authenticated.
type Ops struct {
	Metrics *Metrics
	// Ready returns nil if the process does its work; otherwise the error is shown.
	Ready func(ctx context.Context) error
	// StateHash is nil if the process has no replica.
	StateHash func() (StateHash, error)
	// Pprof also exports profiles, which slows the process down while one is taken.
	Pprof bool
	// LogLevel is the least level that is logged. Nil: it cannot be changed.
	LogLevel *slog.LevelVar
}

// Handler serves GET /metrics, /api/livez, /api/readyz, /state-hash, GET and PUT /log-level and,
// with Pprof, /debug/pprof/.
func (o Ops) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(o.Metrics,
		promhttp.HandlerOpts{MaxRequestsInFlight: opsMaxScrapes, Timeout: opsWriteTimeout / 2}))
	mux.HandleFunc("GET /api/livez", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusOK, map[string]string{"status": "ok"})
	})
	mux.HandleFunc("GET /api/readyz", o.readyz)
	if o.StateHash != nil {
		mux.HandleFunc("GET /state-hash", o.stateHash)
	}
	if o.LogLevel != nil {
		mux.HandleFunc("GET /log-level",
			func(w http.ResponseWriter, _ *http.Request) { o.tellLevel(w) })
		mux.HandleFunc("PUT /log-level", o.putLevel)
	}
	if o.Pprof {
		mux.HandleFunc("GET /debug/pprof/", pprof.Index)
		mux.HandleFunc("GET /debug/pprof/cmdline", pprof.Cmdline)
		mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
		mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
		mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	}
	return mux
}

func (o Ops) readyz(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), readyWithin)
	defer cancel()
	if o.Ready != nil {
		if err := o.Ready(ctx); err != nil {
			answer(w, http.StatusServiceUnavailable,
				map[string]string{"status": "not ready", "reason": err.Error()})
			return
		}
	}
	answer(w, http.StatusOK, map[string]any{"status": "ok", "pid": os.Getpid()})
}

// maxLevel is the most bytes in the body of a level.
const maxLevel = 64

func (o Ops) tellLevel(w http.ResponseWriter) {
	answer(w, http.StatusOK, map[string]string{
		"level": strings.ToLower(o.LogLevel.Level().String())})
}

// putLevel sets the level named in the body. A restart of the process resets it.
func (o Ops) putLevel(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxLevel))
	if err == nil {
		err = o.LogLevel.UnmarshalText(bytes.TrimSpace(body))
	}
	if err != nil {
		answer(w, http.StatusBadRequest,
			map[string]string{"reason": "want debug, info, warn or error: " + err.Error()})
		return
	}
	o.tellLevel(w)
}

func (o Ops) stateHash(w http.ResponseWriter, _ *http.Request) {
	hash, err := o.StateHash()
	if err != nil {
		answer(w, http.StatusServiceUnavailable,
			map[string]string{"status": "unknown", "reason": err.Error()})
		return
	}
	answer(w, http.StatusOK, hash)
}

func answer(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // the client has gone
}

// Serve serves on l, which it closes, until ctx ends. Then calls under way have 2 s to finish. It
// is a part of a process's lifecycle.
func (o Ops) Serve(ctx context.Context, l net.Listener) error {
	server := &http.Server{Handler: o.Handler(), ReadTimeout: opsReadTimeout,
		WriteTimeout: opsWriteTimeout,
		IdleTimeout:  opsIdleTimeout, MaxHeaderBytes: opsMaxHeader}
	served := make(chan error, 1)
	var serving sync.WaitGroup
	serving.Go(func() { served <- server.Serve(l) })
	defer serving.Wait()
	select {
	case err := <-served:
		return fmt.Errorf("ops server: %w", err)
	case <-ctx.Done():
	}
	finish, cancel := context.WithTimeout(context.WithoutCancel(ctx), opsFinish)
	defer cancel()
	err := server.Shutdown(finish)
	if errors.Is(err, context.DeadlineExceeded) {
		err = server.Close() // cut off
	}
	if err != nil {
		return fmt.Errorf("ops server: %w", err)
	}
	return nil
}
