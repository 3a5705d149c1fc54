package address_test

import (
	"fmt"
	"testing"

	"shoal.dev/shoal/pkg/address"
)

// TestShard: the shard of a site never changes: nodes that disagreed would both crawl it.
func TestShard(t *testing.T) {
	for authority, want := range map[string]int{
		"example.com": 51, "www.example.com": 51, "a.b.example.com:8080": 51, "shop.co.uk": 28,
		"127.0.0.1": 12, "127.0.0.1:80": 12, "[::1]": 46, "[::1]:8080": 46, "": 2,
	} {
		if got := address.Shard(authority, 64); got != want {
			t.Errorf("%q is in shard %d, want %d", authority, got, want)
		}
	}
}

func Example() {
	canonical, err := address.Canonical("HTTPS://Shop.example.co.uk:443/a/../b?q=1#top")
	fmt.Println(canonical, err)
	next, err := address.Resolve(canonical, "../c")
	fmt.Println(next, err)
	fmt.Println(address.HostOf(canonical), address.RegistrableDomain("shop.example.co.uk"))
	// Output:
	// https://shop.example.co.uk/b?q=1 <nil>
	// https://shop.example.co.uk/c <nil>
	// shop.example.co.uk example.co.uk
}
