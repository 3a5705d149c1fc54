// Package heap measures the heap of a test's process: what is in use, and the peak of a while with
// its garbage. Its callers decide what is too much.
package heap

import (
	"runtime"
	"runtime/metrics"
	"sync"
	"sync/atomic"
	"time"
)

// InUse is the heap in use without garbage. Pools are emptied by the second collection.
func InUse() uint64 {
	runtime.GC()
	runtime.GC()
	// HeapAlloc would count what a busy machine's other goroutines have allocated since.
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(live)
	return live[0].Value.Uint64()
}

// Watch starts recording the peak of memory use. most returns the increase since then.
func Watch() (most func() uint64) {
	allocated := func() uint64 {
		var stats runtime.MemStats
		runtime.ReadMemStats(&stats)
		return stats.HeapAlloc
	}
	before, peak, done := InUse(), atomic.Uint64{}, make(chan struct{})
	var watcher sync.WaitGroup
	watcher.Go(func() {
		for ticks := time.NewTicker(20 * time.Millisecond); ; {
			select {
			case <-ticks.C:
				peak.Store(max(peak.Load(), allocated()))
			case <-done:
				ticks.Stop()
				return
			}
		}
	})
	return func() uint64 {
		close(done)
		watcher.Wait()
		return max(peak.Load(), before) - before
	}
}
