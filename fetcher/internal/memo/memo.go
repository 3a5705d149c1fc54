// Package memo owns what a process's chains remember together: tiers that fail at a host,
// discovered values, compiled recipes. Each is bounded and safe for concurrent use. internal/unit
// uses them.
package memo
