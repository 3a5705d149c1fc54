package unit

import (
	"testing"
	"testing/synctest"
	"time"

	"shoal.dev/shoal/pkg/clock"
)

func TestTokenSetsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kept := newTokens(clock.System{})
		values := map[string]string{"a": "b"}
		for n := range maxTokenSets + 10 {
			key := tokenKey{config: uint64(n)}
			_, flight, own := kept.join(key)
			if !own {
				t.Fatalf("set %d is known", n)
			}
			kept.land(key, flight, values, false, time.Minute)
		}
		if n := kept.sets.Len(); n != maxTokenSets ||
			kept.get(tokenKey{config: 0}) != nil || kept.get(tokenKey{config: 20}) == nil {
			t.Errorf("%d sets are kept", n)
		}
		kept.invalidate(tokenKey{config: 20}, map[string]string{"a": "c"})
		if kept.get(tokenKey{config: 20}) == nil {
			t.Error("values are forgotten that others have renewed")
		}
		kept.invalidate(tokenKey{config: 20}, values)
		<-time.After(time.Minute)
		if kept.get(tokenKey{config: 20}) != nil || kept.get(tokenKey{config: 21}) != nil ||
			len(kept.flights) != 0 {
			t.Error("values are kept for too long")
		}
	})
}
