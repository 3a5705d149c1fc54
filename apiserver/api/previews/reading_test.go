package previews

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"shoal.dev/shoal/pkg/extract"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/reading"
)

// A kept page that makes its reader panic cannot be read, and is kept for a look.
func TestPanicOfAKeptPage(t *testing.T) {
	compiled, err := extract.Compile(model.Recipe{Type: model.Viewing})
	if err != nil {
		t.Fatal(err)
	}
	made, err := compiled.Extract(extract.Page{URL: "http://a.test/", ContentType: "text/html",
		Body: []byte("<p>here")})
	if err != nil {
		t.Fatal(err)
	}
	var view extract.View
	if err := json.Unmarshal(made.Rows[0], &view); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	r := Resource{Reader: reading.New("apiserver", reading.Config{Dir: dir})}
	_, err = withShown(r, &view, func(*extract.Showing) (int, error) { panic("a reader's") })
	if fault.CodeOf(err) != fault.SourceUnreachable {
		t.Errorf("%v", err)
	}
	kept, err := filepath.Glob(filepath.Join(dir, "*.page"))
	if len(kept) != 1 || err != nil {
		t.Fatalf("kept: %v, %v", kept, err)
	}
	if body, err := os.ReadFile(kept[0]); !strings.Contains(string(body), "<p>here") {
		t.Errorf("kept: %q, %v", body, err)
	}
}
