package portal

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/evanw/esbuild/pkg/api"
)

// TestTextsAreInOnePlace: all texts of the portal are in texts*.ts. The only exception is the
// sentence of the page without JavaScript.
func TestTextsAreInOnePlace(t *testing.T) {
	var sources []string
	for _, pattern := range []string{"web/*.tsx", "web/*.ts"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		sources = append(sources, found...)
	}
	count := 0
	for _, path := range sources {
		name := filepath.Base(path)
		if strings.HasPrefix(name, "texts.") || strings.HasSuffix(name, ".gen.ts") ||
			strings.HasSuffix(name, ".d.ts") {
			continue
		}
		source, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		literals := literalsOf(t, name, string(source))
		count += len(literals)
		for _, l := range literals {
			if l.says() {
				t.Errorf("%s says %q: texts stand in texts*.ts", name, l.text)
			}
		}
	}
	if count < 1000 {
		t.Errorf("only %d literals are found: the sources are read wrongly", count)
	}
}

// some matches a number before a plural noun.
var some = regexp.MustCompile(`\$\{(n|all|links|pages|rows|added|removed|changed)\} ([a-z]+ )?[a-z]+s\b`)

// TestOneThingIsNotSaidAsMany: a text that counts things has a singular form.
func TestOneThingIsNotSaidAsMany(t *testing.T) {
	files, err := filepath.Glob("web/texts*.ts")
	if err != nil || len(files) < 5 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range some.FindAllString(string(source), -1) {
			t.Errorf("%s says %q of one, too", file, found)
		}
	}
}

// Texts for people are distinguished from other literals.
func TestTextsAreTold(t *testing.T) {
	for source, want := range map[string]string{
		`<p>Rows</p>`:                                      "Rows",
		`<p class="facts wide">{x}</p>`:                    "",
		`<p>{n} s</p>`:                                     " s",
		`<p>{busy && "soon"}</p>`:                          "soon",
		"<p>{busy ? `of ${n}` : x}</p>":                    "of ",
		`<a href={address("/rows", { job: "x" })}>{t}</a>`: "",
		`<p aria-label="rows">{x}</p>`:                     "rows",
		`<Do text="Go on" />`:                              "Go on",
		`<input type="checkbox" id="low" />`:               "",
		`f("GET", "/api/scraper/data", { op: "eq" })`:      "",
		`x.value = "It is saved."`:                         "It is saved.",
		"`${n} rows of a run`":                             " rows of a run",
		"`Rows`":                                           "Rows",
		"`/api/x/${id}/y`":                                 "",
		`x.replace(/"/g, "")`:                              "",
		"x // A comment says \"Something else\".\n":        "",
		`x === "COMPLETED"`:                                "",
		`new Set(("a abbr td").split(" "))`:                "",
		`"strict-transport"`:                               "",
		`{ "Content-Type": "application/json" }`:           "",
	} {
		var said []string
		for _, l := range literalsOf(t, "one.tsx", "export const it = ("+source+")") {
			if l.says() {
				said = append(said, l.text)
			}
		}
		if got := strings.Join(said, "|"); got != want {
			t.Errorf("%s says %q, want %q", source, got, want)
		}
	}
}

// literal is a string literal in a source, or a piece of a template.
type literal struct {
	text   string
	key    string // the member that it is assigned to, "" if none
	after  string // what precedes it
	before string // what follows it
	piece  bool   // of a template with values
}

var (
	letters = regexp.MustCompile(`[A-Za-z]`)
	// a sentence, or a name that people read
	prose    = regexp.MustCompile(`^[A-Z][a-z]+($|[ .,:!?…])|[a-z]{2,} [a-z]{2,}`)
	compared = regexp.MustCompile(`^([!=]==?|case)$`)
	style    = regexp.MustCompile(`\{[^}]*:[^}]*\}`)
)

// says reports whether people would read a literal.
func (l literal) says() bool {
	if compared.MatchString(l.after) {
		return false
	}
	switch l.key {
	case "children", "aria-label", "title", "label", "placeholder", "alt", "hint", "text":
		return letters.MatchString(l.text)
	case "class", "aria-describedby", "autocomplete", "sandbox", "style", "accept", "rel":
		return false
	}
	switch {
	case l.before == ".split", style.MatchString(l.text):
		return false
	case l.piece:
		return letters.MatchString(l.text) && strings.Contains(l.text, " ")
	}
	return prose.MatchString(l.text)
}

// literalsOf returns the literals of a source. The source is first compiled to plain script, where
// text between tags becomes a member named children.
func literalsOf(t *testing.T, name, source string) []literal {
	t.Helper()
	loader := api.LoaderTS
	if strings.HasSuffix(name, ".tsx") {
		loader = api.LoaderTSX
	}
	made := api.Transform(source, api.TransformOptions{Loader: loader, TsconfigRaw: "{}",
		JSX: api.JSXAutomatic, JSXImportSource: "preact", MinifySyntax: true,
		LegalComments: api.LegalCommentsNone, Charset: api.CharsetUTF8})
	if len(made.Errors) > 0 {
		t.Fatalf("%s: %+v", source, made.Errors[0])
	}
	r := &literalReader{left: string(made.Code)}
	r.read("", false)
	if r.failed {
		t.Fatalf("not read to its end: %.80s", r.left)
	}
	return r.found
}

// literalReader reads the literals of a script. It needs no grammar: brackets, names before a colon
// and the token before a literal are enough.
type literalReader struct {
	left   string
	last   string // the token before
	found  []literal
	failed bool
}

var (
	tokens  = regexp.MustCompile(`^(?:[\p{L}_$][\p{L}\p{N}_$]*|[0-9][\w.]*|===|!==|==|!=|=>|\S)`)
	quoted  = regexp.MustCompile(`^(?:"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')`)
	comment = regexp.MustCompile(`^/\*(?s:.*?)\*/`)
	// an expression follows these, not a division or a call
	opening = regexp.MustCompile(`^(?:|[(,=:\[!&|?{};+\-*%~^<>]|[!=]==?|=>|return|typeof|case)$`)
	pattern = regexp.MustCompile(`^/(?:[^/\\\[\n]|\\.|\[(?:[^\]\\\n]|\\.)*\])+/[a-z]*`)
	member  = regexp.MustCompile(`^\s*(?:([\p{L}_$][\p{L}\p{N}_$]*)|"([^"]*)")\s*:`)
)

// read reads to the end of a bracket. Its literals are assigned to member to, or in an object to
// the object's own members.
func (r *literalReader) read(to string, object bool) {
	key := to
	if object {
		key = r.member()
	}
	for !r.failed {
		r.left = strings.TrimLeft(r.left, " \t\n")
		if r.left == "" {
			return
		}
		if found := comment.FindString(r.left); found != "" {
			r.left = r.left[len(found):]
			continue
		}
		if found := quoted.FindString(r.left); found != "" {
			r.left = r.left[len(found):]
			r.take(literal{text: found[1 : len(found)-1], key: key})
			continue
		}
		if opening.MatchString(r.last) {
			if found := pattern.FindString(r.left); found != "" {
				r.left, r.last = r.left[len(found):], "/"
				continue
			}
		}
		token, before := tokens.FindString(r.left), r.last
		if token == "" {
			r.failed = true
			return
		}
		r.left, r.last = r.left[len(token):], token
		switch token {
		case ")", "]", "}":
			return
		case ",", ";":
			if key = to; object {
				key = r.member()
			}
		case "`":
			r.template(key, before)
		case "[":
			r.read(key, false)
		case "(":
			if opening.MatchString(before) {
				r.read(key, false)
			} else {
				r.read("", false) // a call's arguments
			}
		case "{":
			r.read("", true)
		}
	}
}

// member returns the name of the next member, "" if there is none.
func (r *literalReader) member() string {
	found := member.FindStringSubmatch(r.left)
	if found == nil {
		return ""
	}
	r.left, r.last = r.left[len(found[0]):], ":"
	return found[1] + found[2]
}

// take records a literal that was just read.
func (r *literalReader) take(l literal) {
	l.after, l.before = r.last, ""
	if strings.HasPrefix(r.left, ".split(") {
		l.before = ".split"
	}
	r.found, r.last = append(r.found, l), `"`
}

// template reads a template to its end. Literals in its values count for the template's member.
func (r *literalReader) template(key, after string) {
	piece, from := "", len(r.found)
	for !r.failed {
		end := strings.IndexAny(r.left, "`\\$")
		if end < 0 {
			r.failed = true
			return
		}
		piece += r.left[:end]
		rest := r.left[end:]
		switch {
		case rest[0] == '\\' && len(rest) > 1:
			piece += rest[:2]
			r.left = rest[2:]
		case strings.HasPrefix(rest, "${"):
			r.left, r.last = rest[2:], "{"
			r.found = append(r.found, literal{text: piece, key: key, after: after, piece: true})
			piece = ""
			r.read(key, false)
		case rest[0] == '$':
			piece += "$"
			r.left = rest[1:]
		default:
			r.left, r.last = rest[1:], after
			r.take(literal{text: piece, key: key, piece: len(r.found) > from})
			return
		}
	}
}
