package memo

import (
	"testing"
	"testing/synctest"
	"time"

	"shoal.dev/shoal/pkg/clock"
)

func TestTokenSetsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kept := NewTokens(clock.System{})
		values := map[string]string{"a": "b"}
		for n := range maxTokenSets + 10 {
			key := TokenKey{Config: uint64(n)}
			_, flight, own := kept.Join(key)
			if !own {
				t.Fatalf("set %d is known", n)
			}
			kept.Land(key, flight, values, false, time.Minute)
		}
		if n := kept.sets.Len(); n != maxTokenSets ||
			kept.Get(TokenKey{Config: 0}) != nil || kept.Get(TokenKey{Config: 20}) == nil {
			t.Errorf("%d sets are kept", n)
		}
		kept.Invalidate(TokenKey{Config: 20}, map[string]string{"a": "c"})
		if kept.Get(TokenKey{Config: 20}) == nil {
			t.Error("values are forgotten that others have renewed")
		}
		kept.Invalidate(TokenKey{Config: 20}, values)
		<-time.After(time.Minute)
		if kept.Get(TokenKey{Config: 20}) != nil || kept.Get(TokenKey{Config: 21}) != nil ||
			len(kept.flights) != 0 {
			t.Error("values are kept for too long")
		}
	})
}
