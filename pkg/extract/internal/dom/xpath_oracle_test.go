//go:build oracle

package dom

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var (
	oraclePages = flag.String("oracle.pages", "",
		"directory of saved pages (*.html), such as the test pages of mozilla/readability")
	oracleCount  = flag.Int("oracle.expressions", 10_000, "expressions to compare")
	oracleSample = flag.Bool("oracle.sample", false,
		"write the sample that the ordinary tests read")
	oracleSeed = flag.Uint64("oracle.seed", 1, "seed of the expressions")
)

// libxml2 evaluates expressions on given trees.
const libxml2 = `
import sys, json
from lxml import etree
for line in sys.stdin:
    job = json.loads(line)
    tree = etree.fromstring(job["page"].encode(), etree.XMLParser(huge_tree=True, strip_cdata=False))
    place = {e: i for i, e in enumerate(e for e in tree.iter() if isinstance(e.tag, str))}
    def show(n):
        if not hasattr(n, "getparent"): return str(n)
        if not isinstance(n, str): return "e%d" % place[n]
        p = n.getparent()
        if n.is_attribute: return "a%d %s=%s" % (place[p], n.attrname, n)
        if n.is_tail: p = p.getparent()
        return "t%d %s" % (place[p], n)
    answers = []
    for x in job["expressions"]:
        r = tree.getroottree().xpath(x)
        if isinstance(r, list): answers.append(sorted(show(n) for n in r if n is not None))
        elif isinstance(r, float): answers.append(r if r == r and abs(r) != float("inf") else None)
        elif isinstance(r, bool): answers.append(r)
        else: answers.append(str(r))
    print(json.dumps(answers), flush=True)
`

// expressionMaker makes expressions from the names and values of a page. It avoids what differs by
// the given tree rather than by XPath. That is node() on descendants (there are comments), and the
// axes following and preceding of attributes (libxml2 leaves out what their element holds). It also
// avoids numbers as texts (libxml2 writes 15 digits).
type expressionMaker struct {
	*rand.Rand
	names, attrs, words []string
	far                 int // number of axes that lead across the page
}

func (m *expressionMaker) of(all ...string) string { return all[m.IntN(len(all))] }

func (m *expressionMaker) name() string { return m.of(append(m.names, "*")...) }

func (m *expressionMaker) path(depth int) string {
	path := m.of("//", "//", "/html//", ".//", "")
	if depth > 0 {
		path = m.of("", "", "", ".//", "../", "//")
	}
	if strings.HasSuffix(path, "//") {
		m.far++
	}
	for i := range 1 + m.IntN(3) {
		if i > 0 {
			path += m.of("/", "/", "//")
		}
		path += m.step(depth)
	}
	return path + m.of("", "", "", "", "/text()", "/@"+m.of(append(m.attrs, "*")...), "/..")
}

func (m *expressionMaker) step(depth int) string {
	axis := m.of("", "", "", "", "ancestor::", "ancestor-or-self::", "descendant::",
		"descendant-or-self::", "following-sibling::",
		"preceding-sibling::", "parent::", "self::", "child::")
	if m.far < 2 && m.IntN(8) == 0 {
		m.far++
		axis = m.of("following::", "preceding::")
	}
	step := axis + m.name()
	for depth < 2 && m.IntN(3) == 0 {
		step += "[" + m.filter(depth+1) + "]"
	}
	return step
}

func (m *expressionMaker) number(depth int) string {
	return m.of("1", "2", "3", "last()", "position()", "last() - 1", "position() mod 2",
		"count("+m.path(depth)+")", "string-length(.)",
		"string-length(@"+m.of(m.attrs...)+")", "number(.)", "-1 + 2", "floor(last() div 2)",
		"ceiling(position() div 3)", "round(2.5)", "round(-2.5)", "-5 mod 3", "5 mod -3",
		"1 div 0", "number('x')", "number("+m.path(depth)+")", "sum("+m.path(depth)+")",
		"number(@"+m.of(m.attrs...)+" = .)")
}

func (m *expressionMaker) text(depth int) string {
	return m.of("'"+m.of(m.words...)+"'", ".", "@"+m.of(m.attrs...), "string("+m.path(depth)+")",
		"normalize-space(.)", "name()",
		"local-name()", "namespace-uri()", "substring(., 2)", "substring(., 1.5, 2.6)",
		"substring(., 0 div 0)", "substring(., -1 div 0, 1 div 0)", "local-name("+m.path(depth)+")",
		"substring(., 2, 3)", "translate(., 'aeiou', 'AEI')", "substring-before(., ' ')",
		"substring-after(., ' ')", "concat(name(), '-', .)")
}

func (m *expressionMaker) filter(depth int) string {
	sign := m.of("=", "!=", "<", "<=", ">", ">=")
	switch m.IntN(14) {
	case 12:
		return m.of("true()", "false()", "boolean("+m.path(depth)+")",
			"boolean("+m.number(depth)+")", "boolean("+m.text(depth)+")")
	case 13:
		return m.of("boolean(", "not(") + m.path(depth) + ") " + m.of("=", "!=", "<", ">=") + " " +
			m.of("true()", "false()", m.number(depth), m.text(depth), m.path(depth))
	case 10:
		return m.path(depth) + " " + sign + " " + m.of("1", "2.5", "'"+m.of(m.words...)+"'", "7")
	case 11:
		return "(" + m.path(depth) + " | " + m.path(depth) + ")" + m.of("", " = '"+
			m.of(m.words...)+"'")
	case 0, 1, 2:
		return m.of("1", "2", "last()", "position() < 3", "position() = last()", m.number(depth))
	case 3:
		return "@" + m.of(m.attrs...)
	case 4:
		return m.path(depth)
	case 5:
		return m.number(depth) + " " + sign + " " + m.number(depth)
	case 6:
		return m.text(depth) + " " + m.of("=", "!=") + " " + m.text(depth)
	case 7:
		return m.of("contains", "starts-with") + "(" + m.text(depth) + ", '" + m.of(m.words...) +
			"')"
	case 8:
		return "not(" + m.filter(depth) + ")"
	}
	return m.filter(depth) + m.of(" and ", " or ") + m.filter(depth)
}

func (m *expressionMaker) expression() string {
	m.far = 0
	switch m.IntN(8) {
	case 0:
		return "string(" + m.path(0) + ")"
	case 1:
		return "count(" + m.path(0) + ")"
	case 2:
		return m.path(0) + " | " + m.path(0)
	case 3:
		return "(" + m.path(0) + ")[" + m.filter(1) + "]"
	case 4:
		return m.path(0) + " " + m.of("=", "!=", "<", ">=") + " " + m.path(1)
	}
	return m.path(0)
}

// asXML returns a document as XML, or "" if XML cannot express it.
func asXML(d *Document) string {
	d.fillNodes()
	var b strings.Builder
	var write func(at int32) bool
	write = func(at int32) bool {
		n := &d.xpath.nodes[at]
		if n.text >= 0 {
			if n.before >= 0 && d.xpath.nodes[n.before].text >= 0 {
				b.WriteString("<!---->")
			}
			return writeXML(&b, d.valueAt(spot{at, -1}))
		}
		name := d.nameAt(spot{at, -1})
		if !isXMLName(name) {
			return false
		}
		b.WriteString("<" + name)
		for i := d.elems[n.elem].attrs; i < d.elems[n.elem].attrsEnd; i++ {
			if !isXMLName(d.attrs[i].name) || d.attrs[i].name == "xmlns" {
				return false
			}
			b.WriteString(" " + d.attrs[i].name + `="`)
			if !writeXML(&b, d.value(i)) {
				return false
			}
			b.WriteString(`"`)
		}
		b.WriteString(">")
		for child := at + 1; child < n.end; child = d.xpath.nodes[child].end {
			if !write(child) {
				return false
			}
		}
		b.WriteString("</" + name + ">")
		return true
	}
	if !write(1) {
		return ""
	}
	return b.String()
}

func isXMLName(name string) bool {
	return name != "" && (isLetter(name[0]) || name[0] == '_') &&
		strings.Trim(name,
			"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.") == ""
}

func writeXML(b *strings.Builder, s string) bool {
	var escaped bytes.Buffer
	if err := xml.EscapeText(&escaped, []byte(s)); err != nil {
		return false
	}
	b.Write(escaped.Bytes())
	return !strings.ContainsRune(escaped.String(), '\ufffd')
}

// TestXPathOracle compares generated expressions over saved pages with libxml2, which must be
// installed as Python's lxml:
//
//	go test -tags oracle -run XPathOracle ./pkg/extract/internal/dom -oracle.pages DIRECTORY
func TestXPathOracle(t *testing.T) {
	var pages []string
	err := filepath.WalkDir(*oraclePages, func(path string, e os.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, ".html") {
			pages = append(pages, path)
		}
		return err
	})
	if err != nil || len(pages) == 0 {
		t.Fatalf("-oracle.pages: no pages: %v", err)
	}
	random := rand.New(rand.NewPCG(*oracleSeed, 0))
	compared, tooSlow, wrong := 0, 0, 0
	for compared < *oracleCount {
		n, slow, bad := comparePage(t, random, pages[random.IntN(len(pages))])
		compared, tooSlow, wrong = compared+n, tooSlow+slow, wrong+bad
	}
	t.Logf("%d expressions: %d differ, %d took too long", compared, wrong, tooSlow)
	if 2_000*tooSlow > compared {
		t.Error("more than 5 in 10,000 took too long")
	}
}

func comparePage(t *testing.T, random *rand.Rand, file string) (compared, tooSlow, wrong int) {
	body, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var d Document
	if len(body) > 300_000 || d.Parse(body) != nil {
		return
	}
	page := asXML(&d)
	if page == "" {
		return
	}
	m := makerOf(random, &d)
	var expressions []string
	for len(expressions) < 40 {
		if x := m.expression(); len(x) < 300 {
			expressions = append(expressions, x)
		}
	}
	want := askLibxml2(t, page, expressions)
	for i, expr := range expressions {
		x, err := CompileXPath(expr)
		if err != nil {
			t.Fatalf("%s: %v", expr, err)
		}
		compared++
		d.steps, d.check = maxSteps, maxSteps
		got := answerOf(&d, x)
		if d.Err() != nil {
			t.Logf("%s: %s: %v", filepath.Dir(file), expr, d.Err())
			tooSlow++
			continue
		}
		if !sameAnswer(got, want[i]) {
			wrong++
			t.Errorf("%s: %s: got %.200v, want %.200v", file, expr, fmt.Sprint(got),
				fmt.Sprint(want[i]))
		}
	}
	return compared, tooSlow, wrong
}

// makerOf makes expressions from a document's names and attributes.
func makerOf(random *rand.Rand, d *Document) *expressionMaker {
	m := &expressionMaker{Rand: random, words: []string{"a", "the", "1", "e"}}
	for e := range d.elems {
		m.names = append(m.names, d.elems[e].name())
	}
	for i := range d.attrs {
		m.attrs = append(m.attrs, d.attrs[i].name)
	}
	m.attrs = append(m.attrs, "id", "class")
	slices.Sort(m.names)
	m.names = slices.Compact(m.names)
	return m
}

// askLibxml2 returns libxml2's results for expressions on a page, which is XML.
func askLibxml2(t *testing.T, page string, expressions []string) (answers []any) {
	t.Helper()
	input, err := json.Marshal(map[string]any{"page": page, "expressions": expressions})
	if err != nil {
		t.Fatal(err)
	}
	python := exec.CommandContext(t.Context(), "python3", "-c", libxml2)
	python.Stdin, python.Stderr = bytes.NewReader(append(input, '\n')), os.Stderr
	output, err := python.Output()
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(output, &answers); err != nil || len(answers) != len(expressions) {
		t.Fatalf("%d answers, %v", len(answers), err)
	}
	return answers
}

// TestMakeXPathSample rewrites the sample. It takes expressions whose results are short and mostly
// not empty:
//
//	go test -tags oracle -run MakeXPathSample ./pkg/extract/internal/dom -oracle.sample
func TestMakeXPathSample(t *testing.T) {
	if !*oracleSample {
		t.Skip("-oracle.sample is not set")
	}
	d := samplePage(t)
	m := makerOf(rand.New(rand.NewPCG(*oracleSeed, 1)), d)
	m.words = []string{"a", "1", "e", "Tea"}
	var expressions []string
	for len(expressions) < 4000 {
		if x := m.expression(); len(x) < 160 {
			expressions = append(expressions, x)
		}
	}
	var sample bytes.Buffer
	kept, empty := 0, 0
	for i, answer := range askLibxml2(t, asXML(d), expressions) {
		line, err := json.Marshal(sampled{expressions[i], answer})
		if err != nil {
			t.Fatal(err)
		}
		none := fmt.Sprint(answer) == "[]" || answer == "" || answer == nil || answer == false ||
			answer == 0.0
		if len(line) > 400 || kept == sampleSize || none && empty == sampleSize/5 {
			continue
		}
		if kept++; none {
			empty++
		}
		sample.Write(append(line, '\n'))
	}
	if err := os.WriteFile(sampleAnswers, sample.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}
