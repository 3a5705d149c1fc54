package transport

// Fetches counts the files asked for since the start.
func (r *Robots) Fetches() uint64 { return r.fetches.Load() }

// Failures counts the fetches that could not say what is allowed.
func (r *Robots) Failures() uint64 { return r.failures.Load() }

// Proxies counts those of tier super, and those of them that rest after a failure.
func (t *Transport) Proxies() (all, resting int) {
	if t.proxies == nil {
		return 0, 0
	}
	return len(t.proxies.all), t.proxies.resting()
}

// Files counts the files in the cache.
func (r *Robots) Files() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.sites.Len()
}
