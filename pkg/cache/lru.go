package cache

import (
	"fmt"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

// NewLRU is room for so many values, 1 or more. The longest unused go first. gone is called with
// each that leaves, for whatever reason; it may be nil. The owner locks it.
func NewLRU[K comparable, V any](most int, gone func(K, V)) *simplelru.LRU[K, V] {
	lru, err := simplelru.NewLRU(most, gone)
	if err != nil {
		panic(fmt.Sprintf("cache: %v", err)) // callers' bounds are positive constants
	}
	return lru
}
