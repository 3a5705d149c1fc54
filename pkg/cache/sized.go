package cache

import "github.com/hashicorp/golang-lru/v2/simplelru"

// Sized is an LRU that also bounds the total size of its values. The newest value stays, however
// large it is. The caller does the locking.
type Sized[K, V comparable] struct {
	values *simplelru.LRU[K, *sized[V]]
	size   int // of all values
	most   int
}

type sized[V any] struct {
	value V
	size  int
}

// NewSized makes a Sized of at most values values, 1 or more, with at most this total size.
func NewSized[K, V comparable](values, size int) *Sized[K, V] {
	s := &Sized[K, V]{most: size}
	s.values = NewLRU(values, func(_ K, gone *sized[V]) { s.size -= gone.size })
	return s
}

// Get returns a value, and counts as a use of it.
func (s *Sized[K, V]) Get(key K) (value V, known bool) {
	if kept, known := s.values.Get(key); known {
		return kept.value, true
	}
	return value, false
}

// Peek returns a value, and does not count as a use of it.
func (s *Sized[K, V]) Peek(key K) (value V, known bool) {
	if kept, known := s.values.Peek(key); known {
		return kept.value, true
	}
	return value, false
}

// Add adds a value, or replaces that of the key. The least recently used values go if need be.
func (s *Sized[K, V]) Add(key K, value V, size int) {
	s.Remove(key)
	s.values.Add(key, &sized[V]{value: value})
	s.Resize(key, value, size)
}

// Resize sets the size of a value that has changed, if the key still has that value.
func (s *Sized[K, V]) Resize(key K, value V, size int) {
	kept, known := s.values.Peek(key)
	if !known || kept.value != value {
		return
	}
	s.size += size - kept.size
	for kept.size = size; s.size > s.most && s.values.Len() > 1; {
		s.values.RemoveOldest()
	}
}

// Remove removes the value of a key, if there is one.
func (s *Sized[K, V]) Remove(key K) { s.values.Remove(key) }

// Len returns the number of values.
func (s *Sized[K, V]) Len() int { return s.values.Len() }

// Size returns the total size of all values.
func (s *Sized[K, V]) Size() int { return s.size }
