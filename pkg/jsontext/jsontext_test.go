package jsontext

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

// FuzzAppendString compares AppendString with what encoding/json reads and writes, for text and for
// bytes.
func FuzzAppendString(f *testing.F) {
	every := make([]byte, 0, 512)
	for b := range 256 {
		every = append(every, byte(b), 'a')
	}
	for _, s := range []string{"", `"\/`, "\b\f\n\r\t\x00\x1f\x7f", "é€😀\u2028\u2029\ufffd", "\xff",
		"a\xe2\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80", string(every)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got := AppendString([]byte("x"), s)
		if again := AppendBytes([]byte("x"), []byte(s)); !bytes.Equal(got, again) {
			t.Fatalf("%q as text is %s, as bytes %s", s, got, again)
		}
		var back string
		if err := json.Unmarshal(got[1:], &back); err != nil {
			t.Fatalf("%q is written as %s: %v", s, got[1:], err)
		}
		want, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		if wanted := decode(t, want); back != wanted {
			t.Fatalf("%q reads %q, by encoding/json %q", s, back, wanted)
		}
		if strings.ContainsAny(string(got[1:]), "\u2028\u2029\n") {
			t.Fatalf("%q is no JavaScript literal: %s", s, got[1:])
		}
	})
}

func decode(t *testing.T, text []byte) (s string) {
	if err := json.Unmarshal(text, &s); err != nil {
		t.Fatal(err)
	}
	return s
}

func BenchmarkAppendString(b *testing.B) {
	for name, text := range map[string]string{
		"plain":  strings.Repeat("A plain sentence of a page. ", 40),
		"quotes": strings.Repeat("She said \"no\".\n", 70),
		"accent": strings.Repeat("Ändern, prüfen, 読む. ", 40),
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			dst := make([]byte, 0, 4096)
			for b.Loop() {
				dst = AppendString(dst[:0], text)
			}
		})
	}
}
