package egress

import "sync"

// shareOfRoom limits the bytes held for one caller, as a multiple of the room left. A lone caller
// gets four fifths, two get four ninths each. However slowly their responses come, others find
// room. (Choudhury and Hahne, "Dynamic queue length thresholds for shared-memory packet switches",
// 1998.)
const shareOfRoom = 4

// held counts the bytes of bodies that are read and not yet released. It is safe for concurrent
// use.
type held struct {
	most  int64
	mu    sync.Mutex
	bytes int64
	of    map[string]int64 // only callers that hold some
}

// reserve counts more bytes for a caller, and reports whether there was room. The empty caller may
// use all the room left.
func (h *held) reserve(caller string, more int64) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	left := h.most - h.bytes - more
	if left < 0 || caller != "" && h.of[caller]+more > shareOfRoom*left {
		return false
	}
	h.bytes += more
	if caller != "" && more > 0 {
		h.of[caller] += more
	}
	return true
}

// give uncounts bytes that reserve counted.
func (h *held) give(caller string, bytes int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.bytes -= bytes
	if caller == "" {
		return
	}
	if h.of[caller] -= bytes; h.of[caller] <= 0 {
		delete(h.of, caller)
	}
}

// total returns the bytes held for all callers.
func (h *held) total() int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.bytes
}
