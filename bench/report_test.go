package main

import (
	"strings"
	"testing"
	"time"
)

func TestFingerprint(t *testing.T) {
	rows := func(texts ...string) string {
		t.Helper()
		var list [][]byte
		for _, text := range texts {
			list = append(list, []byte(text))
		}
		print, err := fingerprint(list)
		if err != nil {
			t.Fatal(err)
		}
		return print
	}
	a, b := `{"title":"A","price":"1"}`, `{"price":"2","title":"B"}`
	if rows(a, b) != rows(`{"_sourceUrl":"x","title":"B","price":"2"}`, a) {
		t.Error("order and foreign keys matter")
	}
	for _, other := range []string{rows(a), rows(a, a, b), rows(a, `{"price":"2","title":"C"}`),
		rows(a, `{"title":"B"}`)} {
		if other == rows(a, b) {
			t.Error("different rows have the same fingerprint")
		}
	}
}

func TestRatiosAreTakenRoundByRound(t *testing.T) {
	r := &report{Rounds: map[string][]sample{}}
	for _, seconds := range []int{1, 2, 4} {
		r.add("slow", sample{Pages: 100, CPU: 4 * time.Duration(seconds) * time.Second})
		r.add("fast", sample{Pages: 100, CPU: time.Duration(seconds) * time.Second})
	}
	if got, ok := r.ratios("fast", "slow"); !ok || got != (spread{4, 4, 4}) {
		t.Errorf("%v, %v", got, ok)
	}
	if _, ok := r.ratios("fast", "nobody"); ok {
		t.Error("a ratio to nobody")
	}
	if got := spreadOf([]float64{3, 1, 2, 10}); got != (spread{1, 2.5, 10}) {
		t.Error(got)
	}
}

func TestSumTraces(t *testing.T) {
	times, err := sumTraces([]byte(strings.Join([]string{
		"File: shoal", "Type: cpu",
		"-----------+-------------------------------------------------------",
		"20000000ns   runtime.memmove", "             bufio.(*Reader).Read (inline)",
		"             shoal.dev/shoal/pkg/egress.(*Client).Do",
		"             shoal.dev/shoal/fetcher.(*Fetcher).work",
		"-----------+-------------------------------------------------------",
		"10000000ns   runtime.scanobject", "             runtime.gcAssistAlloc",
		"             shoal.dev/shoal/pkg/extract.(*Extractor).Extract",
		"-----------+-------------------------------------------------------",
		"30000000ns   github.com/valyala/fasthttp.appendArg",
		"             shoal.dev/shoal/pkg/egress.parse",
		"-----------+-------------------------------------------------------",
		"40000000ns   github.com/hashicorp/raft.(*Raft).runLeader",
		"             github.com/hashicorp/raft.(*Raft).run",
		"-----------+-------------------------------------------------------",
		"50000000ns   runtime.futex", "             runtime.mcall",
		"-----------+-------------------------------------------------------",
		"60000000ns   runtime.memmove",
		"             shoal.dev/shoal/pkg/rowstore/sqlite.(*Store).Scan",
		"             shoal.dev/shoal/apiserver/api/data.scan",
		"-----------+-------------------------------------------------------",
	}, "\n")))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]time.Duration{
		"fetch: one HTTP exchange":                50 * time.Millisecond,
		collectorStage:                            10 * time.Millisecond,
		"control plane: dispatch, commands, Raft": 40 * time.Millisecond,
		runtimeStage:                              50 * time.Millisecond,
	}
	for name, spent := range want {
		if times[name] != spent {
			t.Errorf("%s: %v, want %v", name, times[name], spent)
		}
	}
	if len(times) != len(want) {
		t.Errorf("%v", times)
	}
	if _, err := sumTraces([]byte("nothing")); err == nil {
		t.Error("something else was read")
	}
}

func TestParseOptions(t *testing.T) {
	for _, args := range [][]string{{"-pages", "0"}, {"-only", "nobody"}, {"-nonsense"},
		{"-rounds", "-1"}, {"-only", "fetcher,nobody"},
		{"-quick", "fetcher"}, {"-only", "whole-loop-before"}} {
		if _, err := parseOptions(args); err == nil {
			t.Errorf("%v was taken", args)
		}
	}
	o, err := parseOptions([]string{"-only", "fetcher,whole-loop", "-rounds", "5"})
	if err != nil || len(o.contenders) != 2 || o.rounds != 5 {
		t.Errorf("%+v, %v", o, err)
	}
	o, err = parseOptions([]string{"-only", "whole-loop,whole-loop-before", "-before", "shoal"})
	if err != nil || len(o.contenders) != 2 {
		t.Errorf("%+v, %v", o, err)
	}
}
