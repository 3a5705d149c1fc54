package hostile

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"io"
	"strings"
	"testing"
)

// TestBombsAreWhole reads the assembled bombs with the standard library's readers.
func TestBombsAreWhole(t *testing.T) {
	zipped, err := gzip.NewReader(strings.NewReader(gzippedZeros()))
	if err != nil {
		t.Fatal(err)
	}
	for name, r := range map[string]io.Reader{"gzip": zipped,
		"deflate": flate.NewReader(strings.NewReader(deflatedZeros()))} {
		all, err := io.ReadAll(r)
		if err != nil || len(all) != bombed<<20 || bytes.Trim(all, "\x00") != nil {
			t.Errorf("%s: %d bytes, %v", name, len(all), err)
		}
	}
}
