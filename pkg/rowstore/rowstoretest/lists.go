package rowstoretest

import (
	"errors"
	"fmt"
	"strings"
	"sync"

	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/rowstore"
)

// list stores a list of the given addresses, each its own canonical form.
func (s *suite) list(urls ...string) ids.ID {
	s.Helper()
	id := s.ids.New()
	w, err := s.store.CreateList(s.ctx, id)
	s.ok(err)
	for _, url := range urls {
		added, err := w.Add(s.ctx, url, url)
		s.ok(err)
		if !added {
			s.Fatalf("%q was taken for a duplicate", url)
		}
	}
	count, err := w.Finish(s.ctx)
	s.ok(err)
	s.equal("length", uint32(len(urls)), count)
	return id
}

func address(n int) string { return fmt.Sprintf("https://host-%d.test/a/page-%d?q=ä", n%7, n) }

func addresses(n int) []string {
	urls := make([]string, n)
	for i := range urls {
		urls[i] = address(i)
	}
	return urls
}

func testLists(s *suite) {
	id := s.list(addresses(5000)...)
	other := s.list("https://other.test/")
	for _, test := range []struct {
		from uint32
		most int
		want int
	}{
		{0, 1, 1}, {0, 5000, 5000}, {0, 9000, 5000}, {1000, 100, 100}, {1023, 2, 2}, {4999, 10, 1},
		{5000, 10, 0},
		{4_000_000_000, 10, 0}, {0, 0, 0},
	} {
		links, err := s.store.Links(s.ctx, id, test.from, test.most)
		s.ok(err)
		s.equal(fmt.Sprintf("links from %d", test.from), test.want, len(links))
		for i, link := range links {
			seq := int(test.from) + i
			s.equal("link", rowstore.Link{Seq: uint32(seq), URL: address(seq)}, link)
		}
	}
	links, err := s.store.LinksAt(s.ctx, id, []uint32{0, 1, 1023, 1024, 3000, 4999, 5000})
	s.ok(err)
	var want []rowstore.Link
	for _, seq := range []int{0, 1, 1023, 1024, 3000, 4999} {
		want = append(want, rowstore.Link{Seq: uint32(seq), URL: address(seq)})
	}
	s.equal("chosen links", want, links)
	links, err = s.store.Links(s.ctx, other, 0, 10)
	s.ok(err)
	s.equal("other list", []rowstore.Link{{URL: "https://other.test/"}}, links)
}

func testListSizes(s *suite) {
	for _, size := range []int{0, 1, 1023, 1024, 1025, 8192, 8193, 20000} {
		id := s.list(addresses(size)...)
		links, err := s.store.Links(s.ctx, id, 0, size+1)
		s.ok(err)
		s.equal("length", size, len(links))
		for seq, link := range links {
			if link.Seq != uint32(seq) || link.URL != address(seq) {
				s.Fatalf("list of %d: %v at %d", size, link, seq)
			}
		}
	}
}

func testListDedupe(s *suite) {
	id := s.ids.New()
	w, err := s.store.CreateList(s.ctx, id)
	s.ok(err)
	long := strings.Repeat("x", 5000)
	var want []string
	add := func(url, canonical string, added bool) {
		s.Helper()
		got, err := w.Add(s.ctx, url, canonical)
		s.ok(err)
		s.equal("added "+canonical, added, got)
		if added {
			want = append(want, url)
		}
	}
	add("https://a.test/#x", "https://a.test/", true)
	add("https://a.test/", "https://a.test/", false)
	add("https://A.test/", "https://A.test/", true)
	add("https://a.test/#x", "https://a.test/#x", true)
	add("", "", true)
	add("https://a.test/"+long, "https://a.test/"+long, true)
	for i := range 30000 {
		add(address(i), address(i), true)
		if i%3 == 0 {
			add(address(i/2)+"#again", address(i/2), false)
		}
	}
	add("https://a.test/"+long+"#", "https://a.test/"+long, false)
	count, err := w.Finish(s.ctx)
	s.ok(err)
	s.equal("length", uint32(len(want)), count)
	links, err := s.store.Links(s.ctx, id, 0, len(want)+1)
	s.ok(err)
	for i, link := range links {
		s.equal("link", want[i], link.URL)
	}
}

func testListLifecycle(s *suite) {
	unknown := func(id ids.ID) {
		s.Helper()
		if _, err := s.store.Links(s.ctx, id, 0, 1); !errors.Is(err, rowstore.ErrListUnknown) {
			s.Fatalf("links: %v", err)
		}
		if _, err := s.store.LinksAt(s.ctx, id, []uint32{0}); !errors.Is(err,
			rowstore.ErrListUnknown) {
			s.Fatalf("links at: %v", err)
		}
	}
	infos := func() map[ids.ID]rowstore.ListInfo {
		lists, err := s.store.AllLists(s.ctx)
		s.ok(err)
		known := map[ids.ID]rowstore.ListInfo{}
		for _, list := range lists {
			known[list.ID] = list
		}
		s.equal("lists", len(lists), len(known))
		return known
	}
	unknown(s.ids.New())
	s.ok(s.store.DropList(s.ctx, s.ids.New()))

	finished := s.list(addresses(3000)...)
	aborted, open := s.ids.New(), s.ids.New()
	w, err := s.store.CreateList(s.ctx, aborted)
	s.ok(err)
	for i := range 20000 {
		_, err := w.Add(s.ctx, address(i), address(i))
		s.ok(err)
	}
	unknown(aborted)
	s.ok(w.Abort(s.ctx))
	s.ok(w.Abort(s.ctx))
	unknown(aborted)
	if _, err := w.Add(s.ctx, "x", "x"); err == nil {
		s.Fatal("added after Abort")
	}
	w, err = s.store.CreateList(s.ctx, open)
	s.ok(err)
	s.equal("lists", map[ids.ID]rowstore.ListInfo{
		finished: {ID: finished, Count: 3000, Finished: true}, open: {ID: open}}, infos())
	if _, err := s.store.CreateList(s.ctx, finished); err == nil {
		s.Fatal("a list was created twice")
	}
	count, err := w.Finish(s.ctx)
	s.ok(err)
	s.equal("length", uint32(0), count)
	s.ok(w.Abort(s.ctx))
	if _, err := w.Finish(s.ctx); err == nil {
		s.Fatal("finished twice")
	}
	links, err := s.store.Links(s.ctx, open, 0, 1)
	s.ok(err)
	s.equal("links of an empty list", 0, len(links))

	s.ok(s.store.DropList(s.ctx, finished))
	s.ok(s.store.DropList(s.ctx, finished))
	unknown(finished)
	s.equal("lists", map[ids.ID]rowstore.ListInfo{open: {ID: open, Finished: true}}, infos())
	again := s.list("https://new.test/")
	links, err = s.store.Links(s.ctx, again, 0, 2)
	s.ok(err)
	s.equal("links", []rowstore.Link{{URL: "https://new.test/"}}, links)
}

func testListsAtOnce(s *suite) {
	var group sync.WaitGroup
	made := make([]ids.ID, 8)
	for i := range made {
		made[i] = s.ids.New()
		group.Go(func() {
			w, err := s.store.CreateList(s.ctx, made[i])
			if err != nil {
				s.Error(err)
				return
			}
			for n := range 3000 + i {
				url := fmt.Sprintf("https://list-%d.test/%d", i, n)
				if added, err := w.Add(s.ctx, url, url); err != nil || !added {
					s.Error(added, err)
					return
				}
			}
			if _, err := w.Finish(s.ctx); err != nil {
				s.Error(err)
			}
		})
	}
	job := s.job()
	for seq := range uint32(50) {
		s.put(s.delivered(job, seq, 0, `{"a":1}`))
	}
	group.Wait()
	for i, id := range made {
		links, err := s.store.LinksAt(s.ctx, id, []uint32{0, 2999, uint32(2999 + i)})
		s.ok(err)
		s.equal("last link", fmt.Sprintf("https://list-%d.test/%d", i, 2999+i), links[2].URL)
	}
	s.equal("rows", 50, len(s.rows(only(job))))
}
