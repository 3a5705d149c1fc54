package portal

import (
	"encoding/json"
	"math"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/evanw/esbuild/pkg/api"

	"shoal.dev/shoal/apiserver/api/notifications"
	"shoal.dev/shoal/apiserver/internal/notices"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/testkit/browser"
)

// The portal shows even the longest notice in full.
func TestNoticesAreShownWhole(t *testing.T) {
	source, err := os.ReadFile("web/notices.tsx")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`\{text\} most=\{([0-9_]+)\}`).FindSubmatch(source)
	if found == nil {
		t.Fatal("the page of notices does not say how much of a text it shows")
	}
	shown, err := strconv.Atoi(strings.ReplaceAll(string(found[1]), "_", ""))
	if err != nil {
		t.Fatal(err)
	}
	longest := notices.Text(&client.Notice{Event: model.RunChanged, Changes: &client.RunChanges{
		Added: math.MaxUint64, Removed: math.MaxUint64, Changed: math.MaxUint64,
		Examples: slices.Repeat([]string{strings.Repeat("x", 200)}, 10)}})
	if len(longest) > shown {
		t.Errorf("a notice has %d characters, and %d are shown", len(longest), shown)
	}
}

// speaker calls functions of the portal in a browser with a given language.
func speaker(t *testing.T, language string) func(function string, of any) string {
	t.Helper()
	path := browser.Path(t)
	folder, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	built := api.Build(api.BuildOptions{AbsWorkingDir: folder, Bundle: true,
		LogLevel: api.LogLevelSilent,
		Stdin: &api.StdinOptions{ResolveDir: folder + "/web", Loader: api.LoaderTS, Contents: `
			import { wordsOf } from "./texts.notices";
			import { numbered } from "./show";
			import { sentence } from "./words";
			Object.assign(globalThis, { wordsOf, numbered, sentence });`},
		NodePaths: []string{folder + "/web/third_party"}, Platform: api.PlatformNeutral,
		Conditions: []string{"import"}, MainFields: []string{"module", "main"},
		JSX: api.JSXAutomatic, JSXImportSource: "preact", TsconfigRaw: "{}"})
	if len(built.Errors) > 0 || len(built.OutputFiles) != 1 {
		t.Fatal(built.Errors)
	}
	flags := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path),
		chromedp.Flag("lang", language), chromedp.Flag("accept-lang", language))
	if os.Geteuid() == 0 {
		flags = append(flags, chromedp.NoSandbox)
	}
	allocator, end := chromedp.NewExecAllocator(t.Context(), flags...)
	t.Cleanup(end)
	ctx, end := chromedp.NewContext(allocator)
	t.Cleanup(end)
	if err := chromedp.Do(ctx, chromedp.Navigate("about:blank"), chromedp.Evaluate[chromedp.Void](
		string(built.OutputFiles[0].Contents)+"; undefined")); err != nil {
		t.Fatal(err)
	}
	return func(function string, of any) string {
		t.Helper()
		argument, err := json.Marshal(of)
		if err != nil {
			t.Fatal(err)
		}
		said, err := chromedp.Run(ctx, chromedp.Evaluate[string](
			"JSON.stringify("+function+"("+string(argument)+"))"))
		if err != nil {
			t.Fatal(err)
		}
		return strings.ReplaceAll(said, "\u00a0", " ")
	}
}

// noticesOf makes two notices of every event, one with large numbers and one with 1.
func noticesOf() (all []*client.Notice) {
	for _, event := range append(model.Events(), model.MoreNotices) {
		much := client.Notice{ID: ids.ID{9}, Event: event, Subject: ids.ID{1}, Scraper: ids.ID{2},
			Name: "Shop", Message: "it had 23456 rows", Pages: 1_234_567, Items: 76_543,
			Errors: 12_345, Micros: 1_234_506_750, Count: 11_111, Most: 22_222}
		if event == model.RunChanged {
			much.Changes = &client.RunChanges{From: ids.ID{3}, Added: 33_333, Removed: 44_444,
				Changed: 55_555, Examples: []string{"added sku 8"}}
		}
		one := client.Notice{ID: ids.ID{8}, Event: event, Subject: ids.ID{1}, Name: "Shop",
			Pages: 1, Items: 1, Errors: 1, Micros: 10_000, Count: 1, Most: 1}
		switch event {
		case model.StartRefused:
			one.Message = client.SkipUnaffordable.String()
			much.Message = client.SkipSchema.String()
		case model.QuotaNearLimit:
			one.Name, one.Message, much.Message = "MAX_GROUPS", "PRO", "PRO"
		}
		all = append(all, &much, &one)
	}
	return all
}

// TestNoticesInABrowser: English notices have the same words as the service's, except for numbers
// and amounts. German notices write these in the German way.
func TestNoticesInABrowser(t *testing.T) {
	english, german := speaker(t, "en-US"), speaker(t, "de-DE")
	number := regexp.MustCompile(`€?-?\d[\d.,]*\d( EUR| €)?|\d`)
	plain := func(text string) string {
		text, _, _ = strings.Cut(text, "\nAll: ")
		return number.ReplaceAllString(text, "#")
	}
	grouped := regexp.MustCompile(`(^|[^,\d])\d{5}|\d,\d{3}\b|EUR`)
	for _, n := range noticesOf() {
		told := notifications.NewNotification(n)
		var said struct{ Title, Text string }
		if err := json.Unmarshal([]byte(english("wordsOf", told)), &said); err != nil {
			t.Fatal(err)
		}
		if said.Title != strings.ReplaceAll(told.Title, "11111", "11,111") {
			t.Errorf("%s: %q, want %q", n.Event, said.Title, told.Title)
		}
		if have, want := plain(said.Text), plain(told.Text); strings.TrimSuffix(have, ".") !=
			strings.TrimSuffix(want, ".") {
			t.Errorf("%s: %q, want %q", n.Event, said.Text, told.Text)
		}
		if err := json.Unmarshal([]byte(german("wordsOf", told)), &said); err != nil {
			t.Fatal(err)
		}
		if found := grouped.FindString(said.Title + said.Text); found != "" {
			t.Errorf("%s says %q to Germans: %q, %q", n.Event, found, said.Title, said.Text)
		}
		if n.Micros > 10_000 && strings.Contains(told.Text, "EUR") &&
			!strings.Contains(said.Text, "1.234,50675 €") {
			t.Errorf("%s says to Germans: %q", n.Event, said.Text)
		}
	}
}

// TestSentencesInABrowser: numbers and amounts in the service's sentences follow the browser's
// locale. Text that only looks like a number stays.
func TestSentencesInABrowser(t *testing.T) {
	german := speaker(t, "de-DE")
	for said, want := range map[string]string{
		"120000 rows, where they had 10 to 23456":     "120.000 rows, where they had 10 to 23.456",
		"12.5% of the rows, where it was 98%":         "12,5 % of the rows, where it was 98 %",
		"It costs 0.006750 EUR.":                      "It costs 0,00675 €.",
		"-1.50 EUR are missing":                       "-1,50 € are missing",
		"at most 100000":                              "at most 100.000",
		"the mean is 10.25":                           "the mean is 10,25",
		"of 2026, by RFC 3339 and TLS 1.2":            "of 2026, by RFC 3339 and TLS 1.2",
		"since 2026-11-28T17:30:00Z":                  "since 2026-11-28T17:30:00Z",
		"version 10.2.30 of 127.0.0.1:54321":          "version 10.2.30 of 127.0.0.1:54321",
		"run 6b01682d9c892b6c0ef329b7 and sku-123456": "run 6b01682d9c892b6c0ef329b7 and sku-123456",
		"kept 1.234,50 € and 12.345":                  "kept 1.234,50 € and 12,345",
	} {
		if have := german("numbered", said); have != strconv.Quote(want) {
			t.Errorf("%q is said as %s, want %q", said, have, want)
		}
	}
	if have := german("sentence", `"12345" has more than 12345 links`); have !=
		`"\"12345\" has more than 12.345 links."` {
		t.Error(have)
	}
}
