package portal

import (
	"math"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"shoal.dev/shoal/apiserver/internal/notices"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/model"
)

// The portal shows the longest notice to its end, where the path of the whole comparison stands.
func TestNoticesAreShownWhole(t *testing.T) {
	source, err := os.ReadFile("web/notices.tsx")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`n\.text\} most=\{([0-9_]+)\}`).FindSubmatch(source)
	if found == nil {
		t.Fatal("the page of notices does not say how much of a text it shows")
	}
	shown, err := strconv.Atoi(strings.ReplaceAll(string(found[1]), "_", ""))
	if err != nil {
		t.Fatal(err)
	}
	longest := notices.Text(&client.Notice{Event: model.RunChanged, Changes: &client.RunChanges{
		Added: math.MaxUint64, Removed: math.MaxUint64, Changed: math.MaxUint64,
		Examples: slices.Repeat([]string{strings.Repeat("x", 200)}, 10)}})
	if len(longest) > shown {
		t.Errorf("a notice has %d characters, and %d are shown", len(longest), shown)
	}
}
