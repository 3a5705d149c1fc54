package transport

import (
	"bytes"

	"shoal.dev/shoal/pkg/egress"
)

// maxWall is the largest page that can be a wall: challenges are small, and a shop that merely embeds a vendor's script
// is not a wall.
const maxWall = 16 << 10

// walls are challenge pages that come with a 2xx status. Every mark of one must be on the page: what the vendor's own
// challenge holds and no page about it would.
var walls = []struct {
	name  string
	marks [][]byte
}{
	{"Cloudflare", [][]byte{[]byte("<title>Just a moment...</title>"), []byte("/cdn-cgi/challenge-platform/")}},
	{"Imperva", [][]byte{[]byte("/_Incapsula_Resource?"), []byte("Incapsula incident ID")}},
	{"DataDome", [][]byte{[]byte("captcha-delivery.com/"), []byte("var dd={")}},
	{"HUMAN", [][]byte{[]byte("window._pxAppId"), []byte("px-captcha")}},
}

// recogniseWall names the vendor whose challenge a page is; "" when it is none that we know for certain.
func recogniseWall(body []byte, response *egress.Response) string {
	if response != nil && response.Header("Cf-Mitigated") == "challenge" {
		return "Cloudflare"
	}
	if len(body) > maxWall {
		return ""
	}
	for _, wall := range walls {
		if holdsAll(body, wall.marks) {
			return wall.name
		}
	}
	return ""
}

func holdsAll(body []byte, marks [][]byte) bool {
	for _, mark := range marks {
		if !bytes.Contains(body, mark) {
			return false
		}
	}
	return true
}
