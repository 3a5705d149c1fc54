package dom

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
	"testing"
)

const (
	sampleHTML    = "testdata/xpath/page.html"
	sampleAnswers = "testdata/xpath/libxml2.jsonl" // made by TestMakeXPathSample
	sampleSize    = 600
)

// sampled is an expression with libxml2's result.
type sampled struct {
	Expression string `json:"expression"`
	Answer     any    `json:"answer"`
}

func samplePage(t *testing.T) *Document {
	t.Helper()
	page, err := os.ReadFile(sampleHTML)
	if err != nil {
		t.Fatal(err)
	}
	var d Document
	if err := d.Parse(page); err != nil {
		t.Fatal(err)
	}
	return &d
}

// TestXPathSample compares the evaluator with libxml2's results for generated expressions.
func TestXPathSample(t *testing.T) {
	answers, err := os.ReadFile(sampleAnswers)
	if err != nil {
		t.Fatal(err)
	}
	d, compared := samplePage(t), 0
	for line := range bytes.Lines(answers) {
		var want sampled
		if err := json.Unmarshal(line, &want); err != nil {
			t.Fatal(err)
		}
		x, err := CompileXPath(want.Expression)
		if err != nil {
			t.Fatalf("%s: %v", want.Expression, err)
		}
		if got := answerOf(d, x); !sameAnswer(got, want.Answer) || d.Err() != nil {
			t.Errorf("%s: got %v, want %v, %v", want.Expression, got, want.Answer, d.Err())
		}
		compared++
	}
	if compared != sampleSize {
		t.Errorf("%d expressions, not %d", compared, sampleSize)
	}
}

// answerOf evaluates at the html element, as lxml does.
func answerOf(d *Document, x *XPath) any {
	value := x.evaluate(d, Root)
	if n, ok := value.(float64); ok && (math.IsNaN(n) || math.IsInf(n, 0)) {
		return nil
	}
	places, ok := value.([]spot)
	if !ok {
		return value
	}
	all := []string{}
	for _, p := range places {
		if p.node == 0 {
			continue // the document itself, which lxml leaves out
		}
		switch m := d.matchAt(p); {
		case m.attr >= 0:
			all = append(all, fmt.Sprintf("a%d %s=%s", m.Elem, d.attrs[m.attr].name,
				d.value(m.attr)))
		case m.text >= 0:
			all = append(all, fmt.Sprintf("t%d %s", m.Elem, d.appendTexts(nil, m.text, m.textEnd)))
		default:
			all = append(all, fmt.Sprintf("e%d", m.Elem))
		}
	}
	slices.Sort(all)
	return all
}

func sameAnswer(got, want any) bool {
	if a, ok := got.(float64); ok {
		b, ok := want.(float64)
		return ok && math.Abs(a-b) <= 1e-9*math.Abs(a)
	}
	if a, ok := got.([]string); ok {
		b, ok := want.([]any)
		return ok && slices.EqualFunc(a, b, func(a string, b any) bool { return a == b })
	}
	return got == want
}
