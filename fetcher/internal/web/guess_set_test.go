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

// encodings is the folder tests of https://github.com/chardet/chardet, with subfolders named after
// encodings.
var encodings = flag.String("encodings", "", "hold the guess to a folder of texts in folders "+
	"named after their encodings")

// TestGuessOfSavedTexts counts the correct guesses for a set of texts, in two halves. The guess was
// tuned with every other text.
func TestGuessOfSavedTexts(t *testing.T) {
	if *encodings == "" {
		t.Skip("the set is not part of the project: give its folder with -encodings")
	}
	files, err := filepath.Glob(filepath.Join(*encodings, "*", "*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no texts in %s: %v", *encodings, err)
	}
	var right, all [2]int
	for i, file := range files {
		e, _ := charset.Lookup(setEncoding(filepath.Base(filepath.Dir(file))))
		if e == nil {
			continue // not a web encoding
		}
		body, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.HasPrefix(body, []byte("\xfe\xff")) {
			e, _ = charset.Lookup("utf-16be") // the folder does not tell the byte order
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
	if 373*(right[0]+right[1]) < 365*(all[0]+all[1]) {
		t.Error("fewer than 365 of 373 are read right")
	}
}

// setEncoding returns the encoding in a folder's name, which may end with a language.
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
	case "iso-2022-kr": // no browser supports it
		return ""
	}
	return name
}
