package state

// Run stub
type Run struct{}
