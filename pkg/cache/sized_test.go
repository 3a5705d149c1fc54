package cache_test

import (
	"testing"

	"shoal.dev/shoal/pkg/cache"
)

// The size of a Sized is that of the values it has, at and beyond its bounds.
func TestSized(t *testing.T) {
	s := cache.NewSized[string, int](3, 10)
	holds := func(size int, keys ...string) {
		t.Helper()
		for _, key := range keys {
			if _, known := s.Peek(key); !known {
				t.Errorf("%s is gone", key)
			}
		}
		if s.Len() != len(keys) || s.Size() != size {
			t.Errorf("%d values of the size %d, want %d of %d", s.Len(), s.Size(), len(keys), size)
		}
	}
	s.Add("a", 1, 4)
	s.Add("b", 2, 6)
	holds(10, "a", "b")
	if value, known := s.Get("a"); !known || value != 1 {
		t.Errorf("a is %d, %v", value, known)
	}
	s.Add("c", 3, 1) // b is the least recently used
	holds(5, "a", "c")
	s.Add("b", 2, 0)
	s.Add("d", 4, 0) // one too many
	holds(1, "b", "c", "d")
	s.Resize("b", 2, 9)
	s.Resize("b", 7, 1) // another value's
	s.Resize("a", 1, 1) // gone
	holds(10, "b", "c", "d")
	s.Resize("d", 4, 1)
	holds(10, "b", "d")
	s.Add("b", 5, 3)
	holds(4, "b", "d")
	s.Add("e", 6, 11) // alone it stays
	holds(11, "e")
	s.Remove("e")
	s.Remove("e")
	holds(0)
}
