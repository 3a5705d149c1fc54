package service

import (
	"os"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// TestComposeGivesWhatRolesNeed: the blob store is set only where a role opens it, since its key
// reads every backup. A read-only container has a folder for temporary files.
func TestComposeGivesWhatRolesNeed(t *testing.T) {
	text, err := os.ReadFile("../../../../deploy/compose.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var compose struct {
		Services map[string]struct {
			Image       string
			Command     []string
			Environment map[string]any
			ReadOnly    bool `yaml:"read_only"`
			Tmpfs       []string
		}
	}
	if err := yaml.Unmarshal(text, &compose); err != nil {
		t.Fatal(err)
	}
	nodes := 0
	for _, issued := range compose.Services["certificates"].Command {
		name, role, is := strings.Cut(issued, "=")
		if !is {
			continue
		}
		nodes++
		opens := slices.ContainsFunc(needed(role),
			func(m module) bool { return m.name == blobsModule })
		environment := compose.Services[name].Environment
		for _, of := range []string{"", "_USER", "_PASSWORD"} {
			variable := "SHOAL_BLOBS" + of
			if _, given := environment[variable]; given != opens {
				t.Errorf("%s is given %s: %v, and opens the blob store: %v", name, variable, given,
					opens)
			}
		}
	}
	if nodes == 0 {
		t.Error("no identity is issued")
	}
	for name, service := range compose.Services {
		hasTmp := slices.ContainsFunc(service.Tmpfs,
			func(m string) bool { return strings.HasPrefix(m, "/tmp:") })
		if strings.HasPrefix(service.Image, "shoal") && name != "certificates" &&
			service.ReadOnly && !hasTmp {
			t.Errorf("%s has no /tmp", name)
		}
	}
}
