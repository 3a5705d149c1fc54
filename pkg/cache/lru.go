package cache

import (
	"fmt"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

// NewLRU makes an LRU of at most most values, 1 or more. gone may be nil; it is called with each
// value that leaves, for whatever reason. The caller does the locking.
func NewLRU[K comparable, V any](most int, gone func(K, V)) *simplelru.LRU[K, V] {
	lru, err := simplelru.NewLRU(most, gone)
	if err != nil {
		panic(fmt.Sprintf("cache: %v", err)) // callers' bounds are positive constants
	}
	return lru
}
