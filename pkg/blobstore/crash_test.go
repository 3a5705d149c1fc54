package blobstore

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"pgregory.net/rapid"
)

// forgetful is a disk that knows what was made durable, and can produce the state after a power
// cut. It reads written data from the directory itself.
type forgetful struct {
	root    string
	lastly  func() // called before each step at which a process may die
	content map[string]synced
	names   map[string]map[string]string // of a directory: the file with each name
	ids     []identity
	lies    lies
}

// lies says what a disk falsely reports as durable.
type lies struct{ files, names bool }

// synced is the content of a file when it was last made durable.
type synced struct{ bytes []byte }

// identity distinguishes a file from others with its name. It keeps the file open, so that the
// system does not reuse its inode.
type identity struct {
	info fs.FileInfo
	held *os.File
}

func newForgetful(root string) *forgetful {
	return &forgetful{root: root, lastly: func() {}, content: map[string]synced{},
		names: map[string]map[string]string{}}
}

// file implements syncing.
func (d *forgetful) file(f *os.File) error {
	d.lastly()
	if d.lies.files {
		return nil
	}
	content, err := os.ReadFile(f.Name())
	if err != nil {
		return err
	}
	d.content[d.of(f.Name())] = synced{content}
	return nil
}

// directory implements syncing.
func (d *forgetful) directory(path string) error {
	d.lastly()
	if d.lies.names {
		return nil
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return err
	}
	names := map[string]string{}
	for _, entry := range entries {
		names[entry.Name()] = d.of(filepath.Join(path, entry.Name()))
	}
	d.names[d.of(path)] = names
	return nil
}

// of returns a name for the file at a path that survives renames.
func (d *forgetful) of(path string) string {
	held, err := os.Open(path)
	if err != nil {
		panic(err)
	}
	info, err := held.Stat()
	if err != nil {
		panic(err)
	}
	for i, known := range d.ids {
		if os.SameFile(known.info, info) {
			_ = held.Close()
			return fmt.Sprint(i)
		}
	}
	d.ids = append(d.ids, identity{info, held})
	return fmt.Sprint(len(d.ids) - 1)
}

func (d *forgetful) close() {
	for _, id := range d.ids {
		_ = id.held.Close()
	}
}

// cut writes the state after a power cut into another directory: what was made durable, and a
// random part of the rest.
func (d *forgetful) cut(t *rapid.T, to string) { d.cutFolder(t, d.root, d.of(d.root), to) }

func (d *forgetful) cutFolder(t *rapid.T, from, id, to string) {
	names := map[string]string{}
	entries, err := os.ReadDir(from)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	kept := rapid.Bool()
	for _, entry := range entries {
		if _, durable := d.names[id][entry.Name()]; !durable && kept.Draw(t, "new name kept") {
			names[entry.Name()] = d.of(filepath.Join(from, entry.Name()))
		}
	}
	for name, durable := range d.names[id] {
		names[name] = durable
		now := ""
		if _, err := os.Lstat(filepath.Join(from, name)); err == nil {
			now = d.of(filepath.Join(from, name))
		}
		if now != durable && kept.Draw(t, "change of name kept") {
			if names[name] = now; now == "" {
				delete(names, name)
			}
		}
	}
	for name, file := range names {
		d.cutFile(t, filepath.Join(from, name), file, filepath.Join(to, name))
	}
}

func (d *forgetful) cutFile(t *rapid.T, from, id, to string) {
	var number int
	if _, err := fmt.Sscan(id, &number); err != nil {
		t.Fatal(err)
	}
	if d.ids[number].info.IsDir() {
		if err := os.MkdirAll(to, 0o700); err != nil {
			t.Fatal(err)
		}
		d.cutFolder(t, from, id, to)
		return
	}
	content := d.content[id].bytes
	if _, durable := d.content[id]; !durable {
		content = make([]byte, d.ids[number].info.Size()) // as long or shorter, of zeroes
		content = content[:rapid.IntRange(0, len(content)).Draw(t, "bytes kept")]
	}
	if err := os.WriteFile(to, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestNothingNamedIsLost: a blob whose Put has returned is there, whole, after a power cut at any
// later step. Nothing but whole blobs is ever visible.
func TestNothingNamedIsLost(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		if wrong := crash(t, lies{}); wrong != "" {
			t.Fatal(wrong)
		}
	})
}

// TestWithoutSyncsThingsAreLost checks that the test above can fail.
func TestWithoutSyncsThingsAreLost(t *testing.T) {
	for _, how := range []lies{{files: true}, {names: true}} {
		lost := 0
		rapid.Check(t, func(t *rapid.T) {
			if crash(t, how) != "" {
				lost++
			}
		})
		if lost == 0 {
			t.Errorf("a disk that lies (%+v) has lost nothing", how)
		}
	}
}

// crash makes some calls, cuts the power at one of their steps and says what is wrong then.
func crash(t *rapid.T, how lies) (wrong string) {
	dir, after := folderOf(t), folderOf(t)
	on := newForgetful(dir)
	on.lies = how
	defer on.close()
	s, err := openDirectory(dir, on)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()

	w := &witness{answered: map[Key][]byte{}, written: map[Key][][]byte{}}
	left := rapid.IntRange(0, 40).Draw(t, "steps until the cut")
	cut := false
	on.lastly = func() {
		if left--; left < 0 && !cut {
			cut = true
			on.cut(t, after)
			w.seal()
		}
	}
	for i := range 8 {
		w.act(t, s, i, on)
	}
	if !cut {
		on.cut(t, after)
		w.seal()
	}
	return w.judge(t, after)
}

func folderOf(t *rapid.T) string {
	dir, err := os.MkdirTemp("", "blobs")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// witness knows what a store has acknowledged.
type witness struct {
	answered map[Key][]byte   // content of the last acknowledged Put
	written  map[Key][][]byte // contents that Puts have begun to write
	open     Key              // key of the call under way, which may have any outcome

	must     map[Key][]byte
	may      map[Key][][]byte
	underWay Key
}

// act makes a random call.
func (w *witness) act(t *rapid.T, s *Store, i int, on *forgetful) {
	key := Key{Kind: Uploads, Owner: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "owner"),
		ID: rapid.SampledFrom([]string{"x", "y"}).Draw(t, "id")}
	w.open = key
	defer func() { w.open = Key{} }()
	if rapid.IntRange(0, 4).Draw(t, "call") == 0 {
		if err := s.Delete(t.Context(), key); err != nil {
			t.Fatal(err)
		}
		delete(w.answered, key)
		return
	}
	content := bytes.Repeat([]byte{byte('a' + i)}, 1+rapid.IntRange(0, 5000).Draw(t, "length"))
	w.written[key] = append(w.written[key], content)
	half := len(content) / 2
	from := io.MultiReader(bytes.NewReader(content[:half]), step(on.lastly),
		bytes.NewReader(content[half:]), step(on.lastly))
	if _, err := s.Put(t.Context(), key, from); err != nil {
		t.Fatal(err)
	}
	w.answered[key] = content
}

// step is a point between bytes.
type step func()

// Read implements io.Reader.
func (s step) Read([]byte) (int, error) { s(); return 0, io.EOF }

// seal keeps what is known at the cut.
func (w *witness) seal() {
	w.must, w.may, w.underWay = map[Key][]byte{}, map[Key][][]byte{}, w.open
	for key, content := range w.answered {
		w.must[key] = content
	}
	for key, contents := range w.written {
		w.may[key] = append([][]byte(nil), contents...)
	}
}

// judge says what is wrong with the state after the cut.
func (w *witness) judge(t *rapid.T, dir string) string {
	s, err := OpenDirectory(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	page, err := s.List(t.Context(), Uploads, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[Key]bool{}
	for _, info := range page.Blobs {
		seen[info.Key] = true
		got := contentOf(t, s, info.Key)
		if want, named := w.must[info.Key]; named && info.Key != w.underWay {
			if !bytes.Equal(got, want) {
				return fmt.Sprintf("%s holds other bytes than were answered for", info.Key)
			}
			continue
		}
		whole := false
		for _, content := range w.may[info.Key] {
			whole = whole || bytes.Equal(got, content)
		}
		if !whole {
			return fmt.Sprintf("half of %s is seen: %d bytes", info.Key, len(got))
		}
	}
	for key := range w.must {
		if !seen[key] && key != w.underWay {
			return fmt.Sprintf("%s is lost", key)
		}
	}
	return ""
}

func contentOf(t *rapid.T, s *Store, key Key) []byte {
	r, err := s.Open(t.Context(), key, 0, -1)
	if err != nil {
		t.Fatal(err)
	}
	content, err := io.ReadAll(r)
	if err = errors.Join(err, r.Close()); err != nil {
		t.Fatal(err)
	}
	return content
}
