// Package simulation owns the protocol's simulation: a random interleaving, by seed, of everything
// that can happen to the loop. There are losses, repeats, pauses, crashes, changes of leader, moved
// shards, stops and empty wallets. It runs over the very state machine, ledger, dispatcher and
// leader's steps that production runs. Fetcher, ingest and billing are played by a few lines each;
// no network, no goroutine, no clock but its own. Everything in it is a test.
package simulation
