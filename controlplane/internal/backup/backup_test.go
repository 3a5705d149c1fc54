package backup

import (
	"bytes"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"shoal.dev/shoal/controlplane/internal/codec/codectest"
)

var update = flag.Bool("update", false, "write the golden file anew")

func sample() Header {
	var h Header
	codectest.Fill(&h)
	h.Format = Format
	return h
}

func written(t testing.TB, h Header, state []byte) []byte {
	t.Helper()
	var file bytes.Buffer
	err := Write(&file, h, func(w io.Writer) error {
		_, err := w.Write(state)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return file.Bytes()
}

func TestWhatIsWrittenIsRead(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		size := rapid.SampledFrom([]int{0, 1, 100, piece - 1, piece, piece + 1,
			3*maxPiece + 7}).Draw(rt, "size")
		state := bytes.Repeat([]byte{rapid.Byte().Draw(rt, "byte")}, size)
		var got bytes.Buffer
		h, err := Read(iotest.HalfReader(bytes.NewReader(written(t, sample(), state))), &got)
		if err != nil || !cmp.Equal(h, sample()) || !bytes.Equal(got.Bytes(), state) {
			rt.Fatalf("%+v, %d of %d bytes: %v", h, got.Len(), size, err)
		}
	})
}

func TestCutOffOrDamagedIsRefused(t *testing.T) {
	file := written(t, sample(), []byte("everything that must not be lost"))
	for cut := range len(file) {
		if _, err := Read(bytes.NewReader(file[:cut]), io.Discard); !errors.Is(err, ErrDamaged) {
			t.Fatalf("%d of %d bytes: %v", cut, len(file), err)
		}
	}
	for at := range file {
		damaged := bytes.Clone(file)
		damaged[at] ^= 0x10
		if _, err := Read(bytes.NewReader(damaged), io.Discard); !errors.Is(err, ErrDamaged) {
			t.Fatalf("byte %d is another: %v", at, err)
		}
	}
	if _, err := Read(bytes.NewReader(append(bytes.Clone(file), 0)), io.Discard); !errors.Is(err,
		ErrDamaged) {
		t.Fatalf("something follows: %v", err)
	}
}

var errBroken = errors.New("broken")

// The cause decides what an administrator is told.
func TestOthersFaultsAreNotTheFiles(t *testing.T) {
	file := written(t, sample(), []byte("state"))
	if _, err := Read(iotest.ErrReader(errBroken), io.Discard); !errors.Is(err, errBroken) ||
		errors.Is(err, ErrDamaged) {
		t.Errorf("a broken connection: %v", err)
	}
	if _, err := Read(bytes.NewReader(file), failing{}); !errors.Is(err, errBroken) ||
		errors.Is(err, ErrDamaged) {
		t.Errorf("a full disk: %v", err)
	}
	if err := Write(failing{}, sample(), func(io.Writer) error { return nil }); !errors.Is(err,
		errBroken) {
		t.Errorf("Write: %v", err)
	}
	if err := Write(io.Discard, sample(),
		func(io.Writer) error { return errBroken }); !errors.Is(err, errBroken) {
		t.Errorf("Write of a state that fails: %v", err)
	}
}

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, errBroken }

func TestReleasedFilesStayReadable(t *testing.T) {
	path := filepath.Join("testdata", "backup-v1")
	state := []byte("the state, as its own golden files have it")
	if *update {
		if err := os.WriteFile(path, written(t, sample(), state), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	golden, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(golden, written(t, sample(), state)) {
		t.Error("what is written has changed: keep the file and add another version")
	}
	var got bytes.Buffer
	if h, err := Read(bytes.NewReader(golden), &got); err != nil || !cmp.Equal(h, sample()) ||
		got.String() != string(state) {
		t.Fatalf("%+v: %v", h, err)
	}
}

func FuzzRead(f *testing.F) {
	f.Add(written(f, sample(), []byte("state")))
	f.Add([]byte(magic))
	f.Fuzz(func(t *testing.T, data []byte) {
		var state bytes.Buffer
		h, err := Read(bytes.NewReader(data), &state)
		if err != nil {
			return
		}
		var again bytes.Buffer
		if h2, err := Read(bytes.NewReader(written(t, h, state.Bytes())), &again); err != nil ||
			h2 != h ||
			!bytes.Equal(again.Bytes(), state.Bytes()) {
			t.Fatalf("a whole backup does not survive: %v", err)
		}
	})
}
