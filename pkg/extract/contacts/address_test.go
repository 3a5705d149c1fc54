package contacts

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func emailsIn(text string, own ...string) string {
	var emails []string
	for _, h := range findAddresses(text, own) {
		emails = append(emails, h.email)
	}
	return strings.Join(emails, " ")
}

func TestFindAddresses(t *testing.T) {
	for text, want := range map[string]string{
		"write to info@firma.de.":                       "info@firma.de",
		"<Max.Muster+shop@Mail.Firma.CO.UK>":            "max.muster+shop@mail.firma.co.uk",
		"info@firma.deTelefon 0123":                     "info@firma.de",
		"info@firma.de.Weitere":                         "info@firma.de",
		"info@bücher.de":                                "info@xn--bcher-kva.de",
		"メールinfo＠kaisha.co.jpまで":                        "info@kaisha.co.jp",
		"jürgen@firma.de":                               "jürgen@firma.de",
		"a@b":                                           "",
		"logo@2x.png hero@3x.webp":                      "",
		"react@18.2.0":                                  "",
		"@media print":                                  "",
		"user@localhost":                                "",
		"root@192.168.0.1":                              "",
		"..info@firma.de":                               "info@firma.de",
		"in..fo@firma.de":                               "",
		"info@-firma.de":                                "",
		"info@firma..de":                                "",
		"info@co.uk":                                    "",
		"info@shop.unknowntld":                          "",
		"info [at] firma [dot] de":                      "info@firma.de",
		"info(at)firma.de":                              "info@firma.de",
		"info (ät) firma (punkt) de":                    "info@firma.de",
		"info {arroba} empresa {punto} es":              "info@empresa.es",
		"info@firma(dot)de":                             "info@firma.de",
		"vor [punkt] name [at] firma.de. Weitere Seite": "vor.name@firma.de",
		"E-Mail: info at firma dot de":                  "info@firma.de",
		"info AT firma DOT de":                          "info@firma.de",
		"look at firma.de or meet us at firma dot com":  "",
		"Mail: info @ firma.de":                         "info@firma.de",
		"E-Mail: peter.meier @firma.de":                 "peter.meier@firma.de",
		"Schreiben Sie an info @firma.de oder":          "info@firma.de",
		"Folgen Sie uns @firma.de":                      "",
		"Please contact @firma.de":                      "",
		"see (at) home":                                 "",
		"f(at) = x(dot)":                                "",
	} {
		if got := emailsIn(text); got != want {
			t.Errorf("%q has %q, want %q", text, got, want)
		}
	}
	if got := emailsIn("info@shop.unknowntld", "shop.unknowntld"); got != "info@shop.unknowntld" {
		t.Errorf("on its own domain: %q", got)
	}
}

func TestPlaceholders(t *testing.T) {
	for email, want := range map[string]bool{
		"name@example.com": true, "info@yourdomain.de": true, "max@mustermann.de": true,
		"vorname.nachname@firma-x.de":                          true,
		"0123456789abcdef0123456789abcdef@o1.ingest.sentry.io": true,
		"x@sentry-next.wixpress.com":                           true, "name@domain.tld": true,
		"you@company.com": true, "john.doe@email.com": true, "info@nospam.firma-x.de": true,
		"photo@1.5x.app":  true,
		"info@firma-x.de": false, "max.huber@gmail.com": false, "mail@huber.at": false,
		"john@smith.co.uk": false,
	} {
		if got := isPlaceholder(email, false); got != want {
			t.Errorf("%s: %v", email, got)
		}
	}
	if isPlaceholder("info@domain.de", true) || !isPlaceholder("vorname.nachname@domain.de", true) {
		t.Error("on the site's own domain")
	}
}

func TestContactKind(t *testing.T) {
	for link, want := range map[[2]string]int{
		{"/kontakt", "Kontakt"}:                   contactPage,
		{"/x1", "So erreichen Sie uns – Kontakt"}: contactPage,
		{"/impressum.html", "mehr"}:               imprintPage,
		{"index.php?id=12", "Impressum"}:          imprintPage, {"/?p=ueber-uns", ""}: aboutPage,
		{"/de/%C3%BCber-uns/", "Wir"}:             aboutPage,
		{"/mentions-legales", "Mentions légales"}: imprintPage,
		{"/contact-lenses", "Contact lenses"}:     kinds,
		{"/kontaktlinsen", "Kontaktlinsen"}:       kinds,
		{"/news", "News"}:                         kinds, {"/agb", "AGB"}: kinds,
		{"/impressum-datenschutz", "Impressum & Datenschutz"}: imprintPage,
		{"/o-nas", "O nás"}: aboutPage, {"/a/b/contact-us/", ""}: contactPage,
		{"#kontakt", ""}: kinds,
	} {
		kind, score := contactKind(link[0], link[1])
		if score == 0 {
			kind = kinds
		}
		if kind != want {
			t.Errorf("%q is of kind %d, want %d", link, kind, want)
		}
	}
}

func TestProfiles(t *testing.T) {
	for url, want := range map[string]bool{
		"https://www.facebook.com/x": true, "https://de-de.facebook.com/x": true,
		"http://amazon.co.uk/shops/x": true, "https://ebay.de/usr/x": true,
		"https://maps.google.com/?q=x": true, "https://www.google.de/maps/place/x": true,
		"https://firma.business.site/": true, "https://medium.com/@firma/post-1": true,
		"https://facebook-agentur.de/": false, "https://amazonas-reisen.de/": false,
		"https://www.google.de/": false, "https://firma.de/facebook.com": false,
		"https://amazon.shop/": false, "": false,
	} {
		if got := isProfile(url); got != want {
			t.Errorf("%q: %v", url, got)
		}
	}
}

// TestSpelledSigns: spelledSigns finds exactly the matches of the expression.
func TestSpelledSigns(t *testing.T) {
	pieces := []string{" ", "  ", "(", "[", "{", "<", ")", "]", "}", ">", "at", "AT", "ät", "Ät",
		"@", "＠", "-at-", "_At_", "dot", "punkt", ".", "x",
		"arroba", "собака", "СОБАКА", "małpa", "ä", "\xc3", "apenstaartje", "\n", "a", "kukac",
		"Malpa", "chiocciola", "ZAVINÁČ", "snabel-a", "krøllalfa", "ma", "sn", "(at)", " [ at ] ",
		" at ", "( dot )"}
	rapid.Check(t, func(rt *rapid.T) {
		text := strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 0, 40).Draw(rt, "text"), "")
		most := rapid.IntRange(1, 5).Draw(rt, "most")
		var want []span
		for _, m := range spelledAt.FindAllStringIndex(text, most) {
			want = append(want, span{m[0], m[1]})
		}
		if got := spelledSigns(text, most); !slices.Equal(got, want) {
			rt.Fatalf("%q: %v, want %v", text, got, want)
		}
	})
}
