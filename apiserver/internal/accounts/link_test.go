package accounts

import (
	"net/netip"
	"strings"
	"testing"

	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
)

// A link only opens the letter that was signed, with this service's key.
func TestLinks(t *testing.T) {
	links := Links{Key: []byte("key"), Public: "https://shoal.test"}
	link := links.To(ids.ID{7})
	text, here := strings.CutPrefix(link, "https://shoal.test/sign-in/new-password?link=")
	if id, good := links.read(text); !here || !good || id != (ids.ID{7}) {
		t.Fatalf("%s is of %s", link, id)
	}
	_, signature, _ := strings.Cut(text, ".")
	for _, bad := range []string{"", ".", text[:len(text)-1], text + "A", signature,
		(ids.ID{8}).String() + "." + signature, "x." + sign(links.Key, "x"),
		(ids.ID{7}).String() + "." + sign([]byte("other"), (ids.ID{7}).String())} {
		if _, good := links.read(bad); good {
			t.Errorf("%q is good", bad)
		}
	}
}

func TestPublicAddresses(t *testing.T) {
	for _, good := range []string{"https://shoal.test", "https://shoal.test:8443",
		"http://127.0.0.1:8080", "http://localhost", "http://[::1]:80"} {
		if err := CheckPublic(good); err != nil {
			t.Errorf("%s: %v", good, err)
		}
	}
	for _, bad := range []string{"", "shoal.test", "http://shoal.test", "https://", "ftp://x.test",
		"https://shoal.test/", "https://u@shoal.test", "https://shoal.test?x", "https://x.test#",
		"javascript:alert(1)", "https://" + strings.Repeat("x", 300)} {
		if CheckPublic(bad) == nil {
			t.Errorf("%s is taken", bad)
		}
	}
}

// TestLinksAreTriedAFewTimes: a link serves once. Until then its attempts are limited, as nothing
// else limits the hashes that it causes.
func TestLinksAreTriedAFewTimes(t *testing.T) {
	r := newRig(t)
	account := r.state.View().AccountByEmail(email).ID
	to, _, err := r.HandLink(t.Context(), account)
	if err != nil {
		t.Fatal(err)
	}
	_, link, _ := strings.Cut(to, "link=")
	use := func() fault.Code {
		_, _, err := r.UseLink(t.Context(), link, "a staple of batteries",
			netip.MustParseAddr("192.0.2.1"))
		if err != nil {
			return fault.CodeOf(err)
		}
		return ""
	}
	places, answers := r.hashes.takePlaces(), make(chan fault.Code, usesOfLink.Count)
	for range usesOfLink.Count {
		go func() { answers <- use() }()
	}
	r.hashes.awaitWaiting(t, ofKnown, usesOfLink.Count)
	if code := use(); code != fault.RateLimited {
		t.Errorf("one more: %q", code)
	}
	for range places {
		r.hashes.leave()
	}
	codes := map[fault.Code]int{}
	for range usesOfLink.Count {
		codes[<-answers]++
	}
	if codes[""] != 1 || codes[fault.Unauthorized] != usesOfLink.Count-1 {
		t.Errorf("answered %v", codes)
	}
}
