package service

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"shoal.dev/shoal/pkg/clock"
)

// TestStartWarningsAreShown: warnings of the start appear once on the terminal; later ones go only
// to the log.
func TestStartWarningsAreShown(t *testing.T) {
	var log bytes.Buffer
	var told []string
	s, err := openSignals(t.Context(),
		Config{Notice: func(text string) { told = append(told, text) }}, "n1", &log)
	if err != nil {
		t.Fatal(err)
	}
	role := s.forRole("controlplane")
	role.Info("all is well")
	role.Warn("kafka: repeating", "call", "metadata", "error", "connection\nrefused")
	role.Warn("kafka: repeating", "call", "metadata", "error", "connection refused")
	s.started.Store(true)
	role.Warn("too late")
	if len(told) != 1 || !strings.HasPrefix(told[0],
		"kafka: repeating, call metadata, error connection") || strings.Contains(told[0], "\n") {
		t.Errorf("the terminal shows %q", told)
	}
	if !strings.Contains(log.String(), "too late") ||
		!strings.Contains(log.String(), "role=controlplane") {
		t.Errorf("the log has\n%s", log.String())
	}
}

// TestStartAndStopAreLogged: they name what an operator looks for first, without secrets.
func TestStartAndStopAreLogged(t *testing.T) {
	var log bytes.Buffer
	config := Config{Roles: []string{"billing"}, HostRate: 1}
	config.Services.ClickhouseURL = "http://ann:hush@rows:8123/default?password=hush"
	config.Services.RedisAddr, config.Services.KafkaPassword = "redis://ann:hush@limits:6379/2",
		"hush"
	s, err := openSignals(t.Context(), config, "b1", &log)
	if err != nil {
		t.Fatal(err)
	}
	n := &node{config: config, clock: clock.System{}, signals: s}
	n.logStart()
	n.logStop(n.clock.Now(), nil)
	n.logStop(n.clock.Now(), io.ErrUnexpectedEOF)
	for _, want := range []string{"msg=starting node=b1 version=", "roles=[billing]",
		"clickhouse=http://rows:8123/default ", "redis=redis://limits:6379/2",
		"level=INFO msg=stopped node=b1 version=", "level=ERROR msg=stopped", "unexpected EOF"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log does not say %q:\n%s", want, log.String())
		}
	}
	if strings.Contains(log.String(), "hush") {
		t.Errorf("the log holds a password:\n%s", log.String())
	}
}
