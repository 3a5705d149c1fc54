package sqlite

import (
	"database/sql/driver"
	"testing"

	"shoal.dev/shoal/pkg/rowstore/internal/document"
)

// TestEquals: a document that equals skips never holds the text in another spelling.
func TestEquals(t *testing.T) {
	found := 0
	for _, doc := range []string{`{"a":"x"}`, `{"a":"\u0078"}`, `{"a":"\/"}`, "{\"a\":\"\xff\"}",
		`{"a":"é"}`, `{"b":"x"}`, `{"a":1}`, `{}`} {
		for _, operand := range []string{"x", "/", "\ufffd", "é", "1", ""} {
			value, _ := document.Find(doc, "a")
			text, ok := document.Text(value)
			want := ok && text == operand
			if want {
				found++
			}
			if got, err := equals(nil, []driver.Value{doc, "a", operand}); err != nil ||
				got != want {
				t.Errorf("%q in %q: %v, %v", operand, doc, got, err)
			}
		}
	}
	if found < 5 {
		t.Errorf("only %d of them are equal", found)
	}
}
