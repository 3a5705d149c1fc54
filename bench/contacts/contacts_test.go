package contacts

import (
	"net/url"
	"testing"

	"shoal.dev/shoal/bench/saved"
	"shoal.dev/shoal/pkg/address"
)

// TestTheCorpusHolds: every page can be located and judged, and occurs once.
func TestTheCorpusHolds(t *testing.T) {
	entries, err := Corpus()
	if err != nil {
		t.Fatal(err)
	}
	with, without, seen := map[saved.Half]int{}, map[saved.Half]int{}, map[string]bool{}
	for _, e := range entries {
		parsed, err := url.Parse(e.Address)
		if err != nil || address.RegistrableDomain(parsed.Hostname()) != e.Site {
			t.Errorf("%s: site %s of %s", e.Path, e.Site, e.Address)
		}
		if len(e.SHA256) != 64 || len(e.Commit) != 40 || e.Path == "" || seen[e.SHA256] {
			t.Errorf("%s: incomplete, or there twice", e.Path)
		}
		seen[e.SHA256] = true
		for _, hash := range append(e.Own, e.May...) {
			if len(hash) != hashLength {
				t.Errorf("%s: %s is no hash", e.Path, hash)
			}
		}
		if len(e.Own) > 0 {
			with[saved.HalfOf(e.Site)]++
		} else {
			without[saved.HalfOf(e.Site)]++
		}
	}
	t.Logf("%d pages: %v with an address, %v without", len(entries), with, without)
	for _, half := range []saved.Half{saved.Tune, saved.Held} {
		if with[half] < 70 || without[half] < 50 {
			t.Errorf("%s: %d pages with an address, %d without", half, with[half], without[half])
		}
	}
}

func TestJudge(t *testing.T) {
	answer := Answer{Own: []string{Hash("info@shop.example"), Hash("Ann@shop.example")},
		May: []string{Hash("desk@owner.example")}}
	hidden := Answer{Protected: true}
	for _, c := range []struct {
		answer    Answer
		addresses []string
		protected bool
		want      Judgement
	}{
		{answer, []string{"info@shop.example", "ann@shop.example"}, false, Judgement{Right: 2}},
		{answer, []string{"INFO@shop.example", "desk@owner.example", "web@maker.example"}, false,
			Judgement{Right: 1, Wrong: 1, Missed: 1}},
		{answer, nil, true, Judgement{Missed: 2, Alarm: true}},
		{hidden, nil, true, Judgement{}},
		{hidden, nil, false, Judgement{Unnoticed: true}},
		{hidden, []string{"web@maker.example"}, false, Judgement{Wrong: 1}},
		{Answer{}, nil, false, Judgement{}},
	} {
		if got := c.answer.Judge(c.addresses, c.protected); got != c.want {
			t.Errorf("%v, %v of %+v: %+v, want %+v", c.addresses, c.protected, c.answer, got, c.want)
		}
	}
}
