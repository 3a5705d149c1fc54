package harvest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"shoal.dev/shoal/apiserver/internal/sitemap"
	"shoal.dev/shoal/pkg/address"
	"shoal.dev/shoal/pkg/egress"
	"shoal.dev/shoal/pkg/rowstore"
)

var realFiles = flag.String("sitemaps", "",
	"folder of saved sitemaps and feeds that TestRealSitemaps harvests; none of them is kept here")

// otherReading is what another parser reads from a file.
type otherReading struct {
	File, Form, Error string
	Links             [][2]*string // an address and its first image; "": none, nil: not checked
	Sitemaps          []string
}

// TestRealSitemaps harvests each file of a folder as a page of its own site, on the loopback. It
// compares the result with Python's parser. Each address of the site must come once and in order,
// with its image, and so must each sitemap.
func TestRealSitemaps(t *testing.T) {
	if *realFiles == "" {
		t.Skip("-sitemaps names no folder")
	}
	counts := map[string]int{}
	for _, want := range readOtherwise(t, *realFiles) {
		counts["files"]++
		text, err := os.ReadFile(filepath.Join(*realFiles, want.File))
		if err != nil {
			t.Fatal(err)
		}
		if want.Error != "" { // then our own parser tells the site
			_, _ = sitemap.Read(bytes.NewReader(text), "", func(e sitemap.Entry) bool {
				want.Links = append(want.Links, [2]*string{&e.URL, nil})
				return true
			})
		}
		site, urls, images := ownLinks(&want)
		r := newRig(t, nil)
		r.onlyAt(t, site)
		at := "http://" + site + "/real.xml"
		r.files = map[string]string{site + "/real.xml": string(text)}
		found, foundImages, sitemaps := r.harvested(t, at)
		if want.Error != "" {
			counts["files that the other parser refuses"]++
			counts["links of those"] += len(found)
			t.Logf("%s: %s; %d links", want.File, want.Error, len(found))
			continue
		}
		counts["files of "+want.Form]++
		counts["links"] += len(urls)
		counts["links of other sites"] += len(want.Links) - len(urls)
		if !slices.Equal(found, urls) {
			t.Errorf("%s (%s): %s", want.File, site, firstDifference(found, urls))
		}
		for i := range min(len(found), len(images)) {
			if images[i] == nil || found[i] != urls[i] {
				continue
			}
			if wanted, _ := address.Resolve(at, *images[i]); *images[i] != "" {
				counts["images"]++
				if foundImages[i] != wanted {
					t.Errorf("%s: the image of %s is %q, want %q", want.File, urls[i], foundImages[i],
						wanted)
				}
			}
		}
		for _, named := range want.Sitemaps {
			url, err := address.Resolve(at, named)
			if err != nil || siteOf(url) != siteOf(at) {
				continue
			}
			counts["sitemaps"]++
			if !slices.Contains(sitemaps, url) {
				t.Errorf("%s: %s is not read", want.File, url)
			}
		}
	}
	if counts["files"] == 0 {
		t.Fatal("the folder is empty")
	}
	told := slices.Sorted(func(yield func(string) bool) {
		for what, n := range counts {
			if !yield(fmt.Sprintf("%s: %d", what, n)) {
				return
			}
		}
	})
	t.Logf("%q", told)
}

// readOtherwise reads the files of a folder with Python's parser.
func readOtherwise(t *testing.T, folder string) (readings []otherReading) {
	t.Helper()
	told, err := exec.CommandContext(t.Context(), "python3", "testdata/links.py", folder).Output()
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(told) {
		var one otherReading
		if err := json.Unmarshal(line, &one); err != nil {
			t.Fatal(err)
		}
		readings = append(readings, one)
	}
	return readings
}

// ownLinks are the links on the site to which most of a file's links belong, each once.
func ownLinks(of *otherReading) (site string, urls []string, images []*string) {
	const nowhere = "http://files.test/real.xml"
	all := of.Links
	for i := range of.Sitemaps {
		all = append(all, [2]*string{&of.Sitemaps[i], nil})
	}
	links, site := map[string]int{}, siteOf(nowhere)
	for _, link := range all {
		if url, err := address.Resolve(nowhere, *link[0]); err == nil {
			host := siteOf(url)
			if links[host]++; links[host] > links[site] {
				site = host
			}
		}
	}
	seen := map[string]bool{}
	for _, link := range of.Links {
		url, err := address.Resolve("http://"+site+"/real.xml", *link[0])
		if err == nil && siteOf(url) == site && !seen[url] {
			seen[url] = true
			urls, images = append(urls, url), append(images, link[1])
		}
	}
	return site, urls, images
}

// nobody resolves no host.
type nobody struct{}

// LookupNetIP implements egress.Resolver.
func (nobody) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) {
	return nil, errors.New("no host is known here")
}

// onlyAt makes one site reachable on the loopback, and no other host.
func (r *rig) onlyAt(t *testing.T, site string) {
	t.Helper()
	r.egress.Close()
	var err error
	r.egress, err = egress.New(egress.Config{Allow: []netip.Prefix{
		netip.MustParsePrefix("127.0.0.0/8")}, Origins: map[string]string{
		address.HostOf("http://" + site): r.place}, Resolver: nobody{}})
	if err != nil {
		t.Fatal(err)
	}
}

// harvested is what a harvest finds, and which sitemaps it knows.
func (r *rig) harvested(t *testing.T, at string) (urls, images, sitemaps []string) {
	t.Helper()
	id := r.ask(at, 500_000)
	h := r.finish(id)
	for page := 0; ; page++ {
		rows, err := r.store.Entries(t.Context(), rowstore.EntriesQuery{Harvest: id,
			Filter: Entries(), Offset: 1_000 * page, Limit: 1_000})
		if err != nil {
			t.Fatal(err)
		}
		for _, doc := range rows {
			var e row
			if err := json.Unmarshal(doc, &e); err != nil {
				t.Fatal(err)
			}
			if e.Image == nil {
				e.Image = new(string)
			}
			urls, images = append(urls, e.URL), append(images, *e.Image)
		}
		if len(rows) < 1_000 {
			break
		}
	}
	j, err := openJournal(t.Context(), &Config{Client: r.client, Store: r.store, Clock: r.clock,
		IDs: r.ids, Point: func(string) {}}, h)
	if err != nil {
		t.Fatal(err)
	}
	for i := range j.files {
		sitemaps = append(sitemaps, j.files[i].URL)
	}
	return urls, images, sitemaps
}

// firstDifference says where two lists begin to differ.
func firstDifference(found, want []string) string {
	at := 0
	for at < min(len(found), len(want)) && found[at] == want[at] {
		at++
	}
	some := func(list []string) []string { return list[min(at, len(list)):min(at+2, len(list))] }
	return fmt.Sprintf("%d links, want %d; from %d on %q, want %q", len(found), len(want), at,
		some(found), some(want))
}
