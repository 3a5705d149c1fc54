package main

import (
	"context"
	"testing"

	"shoal.dev/shoal/cmd/shoal/internal/service"
	"shoal.dev/shoal/cmd/shoal/internal/terminal"
)

func TestTLSFlags(t *testing.T) {
	b := newShell(t)
	b.run = func(context.Context, service.Config) error { return nil }
	for _, flags := range [][]string{{"--tls-cert", "c.pem"}, {"--tls-key", "k.pem"},
		{"--tls-cert", "nowhere", "--tls-key", "nowhere"}} {
		b.shoal(append([]string{"serve"}, flags...)...).want(t, terminal.ExitUsage,
			"--tls-cert, --tls-key")
	}
}
