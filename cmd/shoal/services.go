package main

import (
	"errors"

	"shoal.dev/shoal/controlplane"
	"shoal.dev/shoal/pkg/rowstore"
	"shoal.dev/shoal/pkg/rowstore/sqlite"
	"shoal.dev/shoal/pkg/stream"
)

// services are what the roles work on. This file is the one place that knows which implementations there are: nothing
// else asks whether a process is alone.
type services struct {
	log   stream.Log
	store rowstore.Store
}

// openEmbedded is a log in this process's memory and rows in a directory of its own: all of a cluster that is one
// process.
func openEmbedded(dir string, point func(string)) (*services, error) {
	store, err := sqlite.Open(sqlite.Config{Dir: dir, Point: point})
	if err != nil {
		return nil, err
	}
	log, err := stream.NewMemory(stream.Config{Partitions: int(controlplane.Defaults().Shards)})
	if err != nil {
		return nil, errors.Join(err, store.Close())
	}
	return &services{log: log, store: store}, nil
}

// lag is how many records each topic holds.
func (s *services) lag() map[string]int64 {
	lag := map[string]int64{}
	for _, topic := range []stream.Topic{stream.Tasks, stream.Pages, stream.Receipts} {
		lag[topic.String()] = s.log.Lag(topic)
	}
	return lag
}

// idle says whether everything that was published to a topic has been worked on. It is nil for a log that outlives this
// process: others go on with it.
func (s *services) idle(topic stream.Topic) func() bool {
	if _, embedded := s.log.(*stream.Memory); !embedded {
		return nil
	}
	return func() bool { return s.log.Lag(topic) == 0 }
}

// close ends the services, once the roles have stopped.
func (s *services) close() error { return errors.Join(s.log.Close(), s.store.Close()) }
