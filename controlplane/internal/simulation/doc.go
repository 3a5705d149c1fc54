// Package simulation owns the protocol's simulation: a random interleaving, by seed, of everything
// that can happen to the loop. There are losses, repeats, pauses, crashes, changes of leader, moved
// shards, stops, restores and empty wallets, and history leaves the state all the time. It runs
// production's state machine, ledger, dispatcher, leader's steps and history. A few lines each
// stand in for fetcher, ingest and billing. There is no network, no goroutine, and no clock but its
// own. Everything in it is a test.
package simulation
