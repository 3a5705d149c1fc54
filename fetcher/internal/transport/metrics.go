package transport

// Fetches counts the files asked for since the start.
func (r *Robots) Fetches() uint64 { return r.fetches.Load() }

// Failures counts the fetches that could not say what is allowed.
func (r *Robots) Failures() uint64 { return r.failures.Load() }

// Files counts the files in the cache.
func (r *Robots) Files() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.sites)
}
