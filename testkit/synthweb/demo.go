package synthweb

import "time"

// Demo is the small web of the first run: 40 shops with 2,000 addresses, nearly all of them
// products. A few troublesome pages make the progress bar look like the real web.
func Demo() Config {
	var names []string
	for _, mood := range []string{"amber", "birch", "copper", "harbor", "linen", "meadow", "north",
		"willow"} {
		// in the order of trades
		for _, trade := range []string{"home", "books", "outdoor", "kitchen", "garden"} {
			names = append(names, mood+"-"+trade)
		}
	}
	return Config{
		Seed:         2000,
		Names:        names,
		Hosts:        len(names),
		PagesPerHost: 50,
		PageBytes:    []int{6_000, 10_000, 16_000},
		Mix: Mix{{Product, 945}, {Redirect, 20}, {Flaky, 10}, {Drip, 5}, {Gone, 10}, {NotFound, 6},
			{Failing, 2}, {Empty, 2}},
		MinLatency: 5 * time.Millisecond,
		MaxLatency: 30 * time.Millisecond,
		Robots:     []Robots{RobotsAbsent, RobotsEmpty, RobotsDisallow},
	}
}
