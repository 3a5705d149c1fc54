package egress

import "sync"

// shareOfRoom bounds what is held of one caller's bodies: so many times the room that is left. One
// caller alone has four fifths, two have four ninths each. However slow their answers come, others
// find room. (Choudhury and Hahne, "Dynamic queue length thresholds for shared-memory packet
// switches", 1998.)
const shareOfRoom = 4

// held counts the bytes of bodies that are read and not yet released. It is safe for concurrent
// use.
type held struct {
	most  int64
	mu    sync.Mutex
	bytes int64
	of    map[string]int64 // of those who have some
}

// reserve says whether there was room for more bytes of a caller, and counts them then. What is
// nobody's has all the room that is left.
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

// give ends the count of bytes that take counted.
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

// total is what is held of all.
func (h *held) total() int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.bytes
}
