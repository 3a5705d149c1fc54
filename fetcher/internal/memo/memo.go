// Package memo owns what the chains of a process remember together. That is which tiers do not get
// through to a host, the values that discoveries brought, and compiled recipes. Each of them is
// bounded, and safe for concurrent use. What follows from it is the unit's to say (internal/unit).
package memo
