package fault

import (
	"cmp"
	"maps"
)

// advice says for each page code what the person who launched the run can do.
var advice = map[Code]string{
	PageRobots: "The site asks robots to stay away from these pages. Leave them out, or ask its " +
		"owner.",
	PageAddressForbidden: "Only public addresses are read. An operator can allow ranges of their " +
		"own network with --egress-allow.",
	PageDNS: "Check the spelling of the host, and whether the site still exists.",
	PageConnect: "The site may be down, or refuse the connection. Run the failed links again " +
		"later.",
	PageTLS:     "The site's certificate is not valid. Open it in a browser to see why.",
	PageTimeout: "The site is slow. Run the failed links again later, at a lower pace.",
	PageProtocol: "The site cut off its response. Run the failed links again later, at a lower " +
		"pace.",
	PageTooLarge: "The page exceeds the size limit. Look for a shorter page with the same " +
		"data.",
	PageDecompression: "The site sent a broken response. Run the failed links again later.",
	PageRedirects: "The address redirects in circles, often because a cookie is missing. Open it " +
		"in a browser, and list the address where it ends.",
	PageStatus: "The site refuses the request. Open the address in a browser to see why.",
	PageBlocked: "The site shows a wall instead of the page. A lower pace may get past it, and " +
		"so may the tiers render and super.",
	PageNotHTML: "The address leads to a file, such as an image or a PDF, not to a page. Leave " +
		"it out.",
	PageNotJSON: "The address does not answer with JSON. Check it, or read it as a page.",
	PageUnparsable: "The page cannot be read as HTML. Open it in a browser; leave it out if it " +
		"is broken there, too.",
	PageTooCostly: "Simplify the scraper's selectors and patterns: use fewer :has and " +
		":nth-child, and fewer .* in patterns.",
	PageNoRows: "No field matched. Look at the page with `shoal preview`: it may have another " +
		"layout, or be built by scripts, which needs the tier render.",
	PageRowTooLarge: "A field takes in too much of the page. Give it a narrower selector.",
	PageInvalidURL:  "The address cannot be parsed. Correct it in the list.",
	PageAttemptsExhausted: "The service lost the page again and again. Run the failed links " +
		"again; if that fails too, tell the operator.",
	PageRecipeMissing: "The scraper was deleted while it ran, or undone by a restore. Launch " +
		"the run again.",
	PagePrelaunch: "The page that placeholders are read from has changed. Check the prelaunch rules.",
	PageTierMissing: "An operator must give all fetchers the tier; `shoal cluster nodes` shows " +
		"their tiers.",
	PageRowRejected: "The page's data does not fit the schema. Loosen its required properties, " +
		"or choose another one.",
	PageModel:      "The language model did not answer. Run the failed links again later.",
	PageModelLimit: "The operator's cap for the language model is reached. It resets every day.",
	PageBodyGone: "The body's retention has ended, or newer bodies displaced it. Run the scraper " +
		"to read the page again.",
	PageDailyLimit: "The daily limit is used up. Run the failed links again tomorrow.",
}

const (
	gone    = "The page is gone. Leave it out."
	refused = "The site wants fewer requests, or a browser. A lower pace may get past it, and so " +
		"may the tiers render and super."
	broken = "The site has a problem of its own. Run the failed links again later."
)

// byStatus is the advice for PageStatus where the status says more. 5 stands for 500 to 599.
var byStatus = map[int]string{404: gone, 410: gone, 401: refused, 403: refused, 429: refused,
	5: broken}

// Advice returns what can be done about a link's error, "" for a code that no link has. The status
// is that of the site's answer, 0 without one.
func Advice(code Code, status int) string {
	if code == PageStatus {
		if said := cmp.Or(byStatus[status], byStatus[status/100]); said != "" {
			return said
		}
	}
	return advice[code]
}

// AdviceByStatus returns what Advice says of PageStatus by the status, or by its first digit.
func AdviceByStatus() map[int]string { return maps.Clone(byStatus) }
