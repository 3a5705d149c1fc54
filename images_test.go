package house_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestImagesAreNamedByDigest: users start exactly the intended images, since a tag can be moved.
func TestImagesAreNamedByDigest(t *testing.T) {
	pinned := regexp.MustCompile(`^[a-z0-9./-]+:[A-Za-z0-9._-]+@sha256:[0-9a-f]{64}$`)
	named := map[string]*regexp.Regexp{
		"deploy/compose.yaml": regexp.MustCompile(`(?m)^ *image: *(\S+)$`),
		"deploy/Dockerfile":   regexp.MustCompile(`(?m)^ARG [A-Z]+_IMAGE=(\S+)$`),
	}
	for name, images := range named {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		others := 0
		for _, image := range images.FindAllStringSubmatch(string(text), -1) {
			if image[1] == "shoal" || strings.HasPrefix(image[1], "shoal-") {
				continue // built here
			}
			if others++; !pinned.MatchString(image[1]) {
				t.Errorf("%s: %s has no tag and digest", name, image[1])
			}
		}
		if others < 3 {
			t.Errorf("%s: only %d images are found", name, others)
		}
	}
	from := regexp.MustCompile(`(?m)^FROM (?:--platform=\S+ )?(\S+)`)
	text, err := os.ReadFile("deploy/Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	for _, image := range from.FindAllStringSubmatch(string(text), -1) {
		if image[1] != "scratch" && !strings.HasPrefix(image[1], "${") {
			t.Errorf("deploy/Dockerfile: FROM %s names no argument that is pinned", image[1])
		}
	}
}
