package curl

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"shoal.dev/shoal/pkg/address"
	"shoal.dev/shoal/pkg/egress"
)

// FuzzParse: a parsed request can be sent, and parsing is deterministic.
func FuzzParse(f *testing.F) {
	for _, c := range copied {
		f.Add(c.command)
	}
	f.Add(`curl -F a=1 -F 'b="x\"y";type=text/plain' https://shop.test`)
	f.Add("curl https://shop.test/{{A}} --json '{\"a\":{{B}}}'")
	f.Add("curl -G -d a --data-urlencode b=c $'\\u00e4\\x41\\101\\cA' https://shop.test")
	f.Fuzz(func(t *testing.T, command string) {
		r, err := Parse(command)
		if err != nil {
			return
		}
		if _, err := address.Canonical(r.URL); err != nil {
			t.Errorf("address %q: %v", r.URL, err)
		}
		if err := checkHeader(r.Header); err != nil {
			t.Error(err)
		}
		if !egress.IsToken(r.Method) {
			t.Errorf("method %q", r.Method)
		}
		for _, name := range []string{"host", "content-length", "transfer-encoding", "connection",
			"accept-encoding"} {
			if value, given := r.field(name); given {
				t.Errorf("%s: %q", name, value)
			}
		}
		if again, err := Parse(command); err != nil || show(again) != show(r) {
			t.Error("read again it is another request")
		}
		for _, param := range []string{"a", "/a/b"} {
			if _, found := r.BodyParam(param); found {
				if value, found := r.WithBodyParam(param, "77").BodyParam(param); !found ||
					value != "77" {
					t.Errorf("%s is %q, %v after it was set", param, value, found)
				}
			}
		}
		values := map[string]string{}
		for _, name := range r.Placeholders() {
			values[name] = "v"
		}
		if filled, ok := r.Fill(values); ok && len(filled.Placeholders()) > 0 {
			t.Errorf("placeholders are left: %q", filled.Placeholders())
		}
	})
}

// quoteBash quotes a word as browsers do for bash.
func quoteBash(word string) string {
	if !regexp.MustCompile(`[^\x20-\x7e]|!|'`).MatchString(word) {
		return "'" + word + "'"
	}
	word = strings.NewReplacer(`\`, `\\`, "'", `\'`, "\n", `\n`, "\r", `\r`).Replace(word)
	return "$'" + regexp.MustCompile(`[^\x20-\x7e]|!`).ReplaceAllStringFunc(word,
		func(s string) string {
			return fmt.Sprintf(`\u%04x`, []rune(s)[0])
		}) + "'"
}

// quoteCmd quotes a word as browsers do for Windows cmd.
func quoteCmd(word string) string {
	word = strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(word)
	word = regexp.MustCompile("[^a-zA-Z0-9\\s_\\-:=+~'/.,?;()*`]").ReplaceAllString(word, "^$0")
	word = regexp.MustCompile(`%([a-zA-Z0-9_])`).ReplaceAllString(word, "%^$1")
	return `^"` + strings.ReplaceAll(word, "\n", "^\n\n") + `^"`
}

// TestQuotedWords: unquoting reverses a browser's quoting.
func TestQuotedWords(t *testing.T) {
	text := rapid.StringOfN(rapid.SampledFrom(
		[]rune("ab1 \\'\"^%!$`&|<>{}[]()~*#\n\té\u00a0\uffff")), 0, 30, -1)
	rapid.Check(t, func(t *rapid.T) {
		words := append([]string{"curl"}, rapid.SliceOfN(text, 1, 4).Draw(t, "words")...)
		bash, cmd := "curl", "curl"
		for _, word := range words[1:] {
			bash += " \\\n  " + quoteBash(word)
			cmd += " ^\n  " + quoteCmd(word)
		}
		if isCmd(bash) || !isCmd(cmd) {
			t.Fatalf("shells are taken for each other: cmd %v, %v\n%s\n%s", isCmd(bash), isCmd(cmd),
				bash, cmd)
		}
		got, err := bashWords(bash)
		if err != nil || fmt.Sprintf("%q", got) != fmt.Sprintf("%q", words) {
			t.Errorf("bash: %q, %v; want %q of\n%s", got, err, words, bash)
		}
		got, err = cmdWords(cmd)
		if err != nil || fmt.Sprintf("%q", got) != fmt.Sprintf("%q", words) {
			t.Errorf("cmd: %q, %v; want %q of\n%s", got, err, words, cmd)
		}
	})
}
