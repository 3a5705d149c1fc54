// Package filter owns the filter tree (decision 18): the one form in which every filter of the API is parsed, checked
// and printed. Each row store prints it to its own SQL; the package runs none.
package filter

// Node is a checked filter: an And, Or, Nor or Compare. A nil Node lets everything pass.
type Node interface{ node() }
