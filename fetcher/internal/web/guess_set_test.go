package web

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/net/html/charset"
	"golang.org/x/text/transform"
)

// encodings is the folder tests of https://github.com/chardet/chardet, whose folders are named
// after encodings.
var encodings = flag.String("encodings", "", "hold the guess to a folder of texts in folders "+
	"named after their encodings")

// TestGuessOfSavedTexts counts the texts of a saved set that are read right, in two halves. Every
// other text was at hand when the guess was written.
func TestGuessOfSavedTexts(t *testing.T) {
	if *encodings == "" {
		return // a set to measure by is no part of the project
	}
	files, err := filepath.Glob(filepath.Join(*encodings, "*", "*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no texts in %s: %v", *encodings, err)
	}
	var right, all [2]int
	for i, file := range files {
		e, _ := charset.Lookup(setEncoding(filepath.Base(filepath.Dir(file))))
		if e == nil {
			continue // none of the web's
		}
		body, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.HasPrefix(body, []byte("\xfe\xff")) {
			e, _ = charset.Lookup("utf-16be") // in a folder that does not tell the order
		}
		want, _, err := transform.Bytes(e.NewDecoder(), body)
		if err != nil {
			t.Fatal(err)
		}
		all[i%2]++
		got, err := toUTF8(body, "text/html")
		if err == nil && string(got) == strings.TrimPrefix(string(want), "\ufeff") {
			right[i%2]++
		} else {
			t.Logf("wrong: %s, %v", file, err)
		}
	}
	t.Logf("right: %d of %d, %d of %d", right[0], all[0], right[1], all[1])
	if 100*(right[0]+right[1]) < 97*(all[0]+all[1]) {
		t.Error("fewer than 97 of 100 are read right")
	}
}

// setEncoding is the encoding of a folder's name, which may go on with a language.
func setEncoding(folder string) string {
	name := strings.ToLower(folder)
	for _, known := range [...]string{"windows-125", "iso-8859-"} {
		if strings.HasPrefix(name, known) {
			name = known + strings.SplitN(name[len(known):], "-", 2)[0]
		}
	}
	switch name {
	case "cp932":
		return "shift_jis"
	case "cp949":
		return "euc-kr"
	case "tis-620":
		return "windows-874"
	case "maccyrillic":
		return "x-mac-cyrillic"
	case "utf-8-sig":
		return "utf-8"
	case "iso-2022-kr": // no browser reads it
		return ""
	}
	return name
}
