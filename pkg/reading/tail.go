package reading

import "io"

// maxTail is how many bytes a Tail keeps at least, if it has read as many.
const maxTail = 256 << 10

// Tail passes on what a reader has, and keeps the end of it: for a Page that is read as a stream.
type Tail struct {
	From io.Reader
	kept []byte
}

// Read implements io.Reader.
func (t *Tail) Read(p []byte) (int, error) {
	n, err := t.From.Read(p)
	if t.kept = append(t.kept, p[:n]...); len(t.kept) > 2*maxTail {
		t.kept = append(t.kept[:0], t.kept[len(t.kept)-maxTail:]...)
	}
	return n, err
}

// Bytes returns the end of what was read.
func (t *Tail) Bytes() []byte { return t.kept }
