// Package telemetry owns what a process tells the outside about itself: metrics, logs, traces, and
// the small HTTP server on which operators ask for them. It decides nothing and knows no role. Each
// role declares what it measures in its own metrics.go, and nothing in the program reads a metric
// back.
package telemetry
