package robots_test

import (
	"fmt"

	"shoal.dev/shoal/pkg/robots"
)

func Example() {
	rules := robots.Parse("User-agent: *\nDisallow: /cart\nCrawl-delay: 2\n"+
		"Sitemap: https://shop.example/sitemap.xml\n", "Shoal")
	fmt.Println(rules.Allow("/shoes"), rules.Allow("/cart/1"), rules.Delay, rules.Sitemaps)
	// Output: true false 2s [https://shop.example/sitemap.xml]
}
