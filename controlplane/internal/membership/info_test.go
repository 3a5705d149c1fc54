package membership

import (
	"encoding/hex"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"shoal.dev/shoal/controlplane/internal/codec/codectest"
)

var update = flag.Bool("update", false, "write the golden encoding anew")

func sample(t *testing.T) (Info, []byte) {
	t.Helper()
	var info Info
	codectest.Fill(&info)
	data, err := encodeInfo(info)
	if err != nil {
		t.Fatal(err)
	}
	return info, data
}

// Nodes of different versions gossip with each other during an upgrade.
func TestInfoEncoding(t *testing.T) {
	info, data := sample(t)
	if v := reflect.ValueOf(info); v.NumField() == 0 {
		t.Fatal("nothing is said")
	}
	path := filepath.Join("testdata", "info-v1")
	if *update {
		if err := os.WriteFile(path, []byte(hex.EncodeToString(data)+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	golden, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	old, err := hex.DecodeString(strings.TrimSpace(string(golden)))
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(hex.EncodeToString(old), hex.EncodeToString(data)); d != "" {
		t.Errorf("the encoding has changed: %s", d)
	}
	decoded, err := decodeInfo(old)
	if d := cmp.Diff(info, decoded); err != nil || d != "" {
		t.Errorf("%v: %s", err, d)
	}
}

func TestWrongInfosAreRefused(t *testing.T) {
	_, data := sample(t)
	for cut := range len(data) {
		if _, err := decodeInfo(data[:cut]); err == nil {
			t.Fatalf("%d of %d bytes are taken", cut, len(data))
		}
	}
	newer := append([]byte{infoVersion + 1}, data[1:]...)
	if _, err := decodeInfo(newer); err == nil {
		t.Fatal("an unknown encoding is taken")
	}
}

func FuzzDecodeInfo(f *testing.F) {
	var info Info
	codectest.Fill(&info)
	data, err := encodeInfo(info)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add([]byte{})
	f.Add([]byte{infoVersion, 0xa0})
	f.Fuzz(func(t *testing.T, data []byte) {
		info, err := decodeInfo(data)
		if err != nil {
			return
		}
		again, err := encodeInfo(info)
		if err != nil {
			return // canonical encoding may make it too long
		}
		if back, err := decodeInfo(again); err != nil || !cmp.Equal(info, back) {
			t.Fatalf("%+v comes back as %+v: %v", info, back, err)
		}
	})
}
