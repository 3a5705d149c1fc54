package house_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

const worth = "| who has stolen | can or cannot | what | shown by |\n|---|---|---|---|\n"

var (
	testFunction = regexp.MustCompile(`(?m)^func (Test\w+)\(t \*testing\.T\)`)
	namedTest    = regexp.MustCompile("`(Test\\w+)`")
)

// TestWhatStolenCertificatesCanIsShown: SECURITY.md says, line by line, what a stolen certificate
// can and cannot do. Each line names existing tests, and no role is left out.
func TestWhatStolenCertificatesCanIsShown(t *testing.T) {
	files := texts(t)
	tests := map[string]bool{}
	for name, text := range files {
		if strings.HasSuffix(name, "_test.go") {
			for _, found := range testFunction.FindAllStringSubmatch(text, -1) {
				tests[found[1]] = true
			}
		}
	}
	_, table, found := strings.Cut(files["SECURITY.md"], worth)
	if !found {
		t.Fatal("SECURITY.md has no table of what stolen certificates are worth")
	}
	said := map[string][]string{}
	for line := range strings.Lines(table) {
		cells := strings.Split(strings.TrimSpace(line), "|")
		if len(cells) != 6 {
			break // the table has ended
		}
		who, may := strings.TrimSpace(cells[1]), strings.TrimSpace(cells[2])
		said[who] = append(said[who], may)
		if may != "can" && may != "cannot" {
			t.Errorf("%q neither can nor cannot: %s", who, line)
		}
		shown := namedTest.FindAllStringSubmatch(cells[4], -1)
		if len(shown) == 0 {
			t.Errorf("no test shows that a stolen %s certificate %s%s", who, may, cells[3])
		}
		for _, name := range shown {
			if !tests[name[1]] {
				t.Errorf("there is no %s, which shows what a stolen %s certificate %s", name[1],
					who, may)
			}
		}
	}
	for _, role := range []string{"fetcher", "ingest", "billing", "apiserver"} {
		for _, may := range []string{"can", "cannot"} {
			if !slices.Contains(said[role], may) {
				t.Errorf("nothing is said of what a stolen %s certificate %s", role, may)
			}
		}
	}
	for _, all := range []string{"controlplane", "authority"} {
		if !slices.Equal(said[all], []string{"can"}) {
			t.Errorf("of a stolen %s certificate is said %q", all, said[all])
		}
	}
}
