package fetcher

// A shard is released in order: pages that have begun are finished and published, the tasks of all
// others are laid down, and then the shard is let go of. Nothing that was asked is asked again, and
// nobody waits for slow hosts. Laid down is not dropped: the markers still name these tasks, and
// when the leader thinks better of it they are taken up again.

// release begins to let go of a shard. What has begun may start requests for one more time-out. It
// needs mu.
func (f *Fetcher) release(s *shard) {
	if !s.releasing {
		s.releasing, s.finishBy = true, f.config.Clock.Now().Add(f.config.Timeout)
		f.layDown(s, func(c *chain) bool { return !c.begun })
	}
	f.releaseWhenDone(s)
}

// keep takes a release back, unless the process stops. It needs mu.
func (f *Fetcher) keep(s *shard) {
	if !s.releasing || f.leaving {
		return
	}
	s.releasing = false
	now := f.config.Clock.Now()
	for _, chains := range s.open {
		for _, c := range chains {
			if f.takeUp(c) {
				f.frontier.Add(&c.item, now)
			}
		}
	}
	notify(f.wake)
}

// layDown takes the waiting tasks that which names out of the frontier. It needs mu.
func (f *Fetcher) layDown(s *shard, which func(*chain) bool) {
	now := f.config.Clock.Now()
	for _, chains := range s.open {
		for _, c := range chains {
			if which(c) && f.frontier.Remove(&c.item, now) {
				f.put(c)
			}
		}
	}
	f.releaseWhenDone(s)
}

// put notes that a task outside the frontier is laid down. It needs mu.
func (f *Fetcher) put(c *chain) {
	c.down = true
	c.shard.down++
}

// takeUp is false when a task is not laid down. It needs mu.
func (f *Fetcher) takeUp(c *chain) bool {
	if !c.down {
		return false
	}
	c.down = false
	c.shard.down--
	return true
}

// goOn lets a chain wait for its next request, unless that is another fetcher's to make. It needs
// mu.
func (f *Fetcher) goOn(c *chain, next step) {
	s, now := c.shard, f.config.Clock.Now()
	c.begun = next.again && (len(c.fetch.tries) > 0 || c.fetch.hops > 0)
	if s.releasing && (!c.begun || !now.Before(s.finishBy)) {
		f.put(c)
		f.releaseWhenDone(s)
		return
	}
	if !c.fetch.until.IsZero() || c.kept > 0 {
		f.timed[c] = struct{}{}
	}
	f.frontier.Resume(&c.item, now.Add(next.wait), now)
}

// releaseWhenDone lets go of a shard once no page of it is begun and all its pages are published.
// It needs mu.
func (f *Fetcher) releaseWhenDone(s *shard) {
	if s.releasing && !s.gone && s.tasks == s.down && len(s.outbox) == 0 && !s.publishing {
		f.counts.released.Add(1)
		f.drop(s)
		notify(f.beatNow)
	}
}
