package reading

import (
	"bytes"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/fault"
)

func newGuard(dir string) *Guard {
	return New("test", Config{Dir: dir, Clock: clock.System{},
		Logger: slog.New(slog.DiscardHandler)})
}

func TestPanicIsThePagesEnd(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "unreadable")
	g := newGuard(dir)
	page := Page{URL: "http://a.test/", ContentType: "text/html", Body: []byte("<b>")}
	if err := g.Run(page, func() {}); err != nil {
		t.Fatal(err)
	}
	if err := g.Run(page, func() { panic("boom") }); fault.CodeOf(err) != fault.PageUnparsable {
		t.Fatalf("%v", err)
	}
	pages, _ := filepath.Glob(filepath.Join(dir, "*"+pageSuffix))
	stories, _ := filepath.Glob(filepath.Join(dir, "*"+storySuffix))
	if len(pages) != 1 || len(stories) != 1 {
		t.Fatalf("kept: %v, %v", pages, stories)
	}
	body, _ := os.ReadFile(pages[0])
	story, _ := os.ReadFile(stories[0])
	if string(body) != "<b>" || !strings.Contains(string(story), "http://a.test/") ||
		!strings.Contains(string(story), "boom") ||
		!strings.Contains(string(story), "reading_test.go") {
		t.Errorf("page %q, story %s", body, story)
	}
}

// TestKeptPagesAreBounded: of any number of unreadable pages only the newest are kept, within the
// limit of bytes.
func TestKeptPagesAreBounded(t *testing.T) {
	for size, want := range map[int]int{10: maxKept, maxPage + 1: maxBytes / maxPage} {
		dir := t.TempDir()
		g := newGuard(dir)
		body := make([]byte, size)
		for range want + 2 {
			_ = g.Run(Page{Body: body}, func() { panic("again") })
		}
		pages, _ := filepath.Glob(filepath.Join(dir, "*"+pageSuffix))
		stories, _ := filepath.Glob(filepath.Join(dir, "*"+storySuffix))
		if len(pages) != want || len(stories) != want {
			t.Errorf("pages of %d bytes: %d and %d are kept, want %d", size, len(pages),
				len(stories), want)
		}
		if strings.Contains(filepath.Base(pages[0]), "-0001") ||
			strings.Contains(filepath.Base(pages[0]), "-0002") {
			t.Error("the oldest are kept")
		}
	}
}

// TestTailOfAStream: a stream is passed on whole, and its end is kept.
func TestTailOfAStream(t *testing.T) {
	for size, least := range map[int]int{0: 0, 1_000: 1_000, 5_000_000: maxTail} {
		text := make([]byte, size)
		for i := range text {
			text[i] = byte(i / 1_000)
		}
		tail := &Tail{From: bytes.NewReader(text)}
		read, err := io.ReadAll(iotest.OneByteReader(tail))
		if kept := tail.Bytes(); err != nil || !bytes.Equal(read, text) ||
			!bytes.HasSuffix(text, kept) || len(kept) < least || cap(kept) > 5*maxTail {
			t.Errorf("of %d bytes %d are read and %d kept: %v", size, len(read), len(kept), err)
		}
	}
}

func TestPageThatCannotBeKept(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"", file} {
		if err := newGuard(dir).Run(Page{},
			func() { panic("boom") }); fault.CodeOf(err) != fault.PageUnparsable {
			t.Errorf("in %q: %v", dir, err)
		}
	}
}
