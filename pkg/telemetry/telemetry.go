// Package telemetry owns what a process tells the outside about itself: metrics, logs, traces, and
// the small HTTP server from which operators read them. It decides nothing and knows no role. Each
// role declares its metrics in its own metrics.go. Nothing in the program reads a metric back.
package telemetry
