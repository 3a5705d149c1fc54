package shortdisk

import (
	"os"
	"path/filepath"
	"testing"
)

func system(string) (uint64, bool) { return 7, true }

func TestDisksAreAsFullAsTheFileSays(t *testing.T) {
	path := filepath.Join(t.TempDir(), "free")
	free := FromEnv(func(string) string { return path }, system)
	if left, known := free("."); left != 7 || !known {
		t.Errorf("without the file: %d bytes, known %t", left, known)
	}
	if err := Set(path, 5); err != nil {
		t.Fatal(err)
	}
	if left, known := free("."); left != 5 || !known {
		t.Errorf("%d bytes are left, known %t", left, known)
	}
	if left, _ := FromEnv(func(string) string { return "" }, system)("."); left != 7 {
		t.Errorf("without the variable: %d bytes", left)
	}
}

func TestSenselessNumbersPanic(t *testing.T) {
	path := filepath.Join(t.TempDir(), "free")
	for _, text := range []string{"", "-1", "some"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%q is taken", text)
				}
			}()
			FromEnv(func(string) string { return path }, system)(".")
		}()
	}
}
