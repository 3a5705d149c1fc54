package identity

import (
	"bytes"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// The PEM blocks of the files, in order. An authority file: its certificate, its key, the gossip
// key, the sign-in key. An identity file: the authority's certificate, the node's own, its key, the
// gossip key, and for API servers the sign-in key.
const (
	certificateBlock = "CERTIFICATE"
	keyBlock         = "PRIVATE KEY"
	gossipBlock      = "SHOAL GOSSIP KEY"
	signInBlock      = "SHOAL SIGN-IN KEY"

	maxFileBytes = 64 << 10
)

// Read reads an identity file and checks that its parts belong together. Whether it has expired is
// up to Check.
func Read(path string) (*Identity, error) {
	data, err := readFile(path)
	if err != nil {
		return nil, fmt.Errorf("identity: %w", err)
	}
	i, err := parseIdentity(data)
	if err != nil {
		return nil, fmt.Errorf("identity %s: %w", path, err)
	}
	return i, nil
}

// Write writes the identity to a new file that only its owner can read.
func (i *Identity) Write(path string) error {
	data, err := i.encode()
	if err == nil {
		err = writeFile(path, data)
	}
	if err != nil {
		return fmt.Errorf("identity: %w", err)
	}
	return nil
}

// ReadAuthority reads an authority's file.
func ReadAuthority(path string) (*Authority, error) {
	data, err := readFile(path)
	if err != nil {
		return nil, fmt.Errorf("authority: %w", err)
	}
	a, err := parseAuthority(data)
	if err != nil {
		return nil, fmt.Errorf("authority %s: %w", path, err)
	}
	return a, nil
}

// Write writes the authority to a new file that only its owner can read. It never replaces an
// existing file: the nodes that it issued would be lost.
func (a *Authority) Write(path string) error {
	data, err := a.encode()
	if err == nil {
		err = writeFile(path, data)
	}
	if err != nil {
		return fmt.Errorf("authority: %w", err)
	}
	return nil
}

func parseIdentity(data []byte) (*Identity, error) {
	f := &file{rest: data}
	i := &Identity{authority: f.certificate(), certificate: f.certificate(), key: f.key(keyBlock),
		GossipKey: f.gossip()}
	if !f.ended() {
		i.SignInKey = f.key(signInBlock)
	}
	if err := f.end(); err != nil {
		return nil, err
	}
	return i, i.validate()
}

func (i *Identity) encode() ([]byte, error) {
	f := &file{}
	f.put(certificateBlock, i.authority.Raw)
	f.put(certificateBlock, i.certificate.Raw)
	f.putKey(keyBlock, i.key)
	f.put(gossipBlock, i.GossipKey)
	if len(i.SignInKey) > 0 {
		f.putKey(signInBlock, i.SignInKey)
	}
	return f.rest, f.err
}

func parseAuthority(data []byte) (*Authority, error) {
	f := &file{rest: data}
	a := &Authority{certificate: f.certificate(), key: f.key(keyBlock), GossipKey: f.gossip(),
		SignInKey: f.key(signInBlock)}
	if err := f.end(); err != nil {
		return nil, err
	}
	return a, a.validate()
}

func (a *Authority) encode() ([]byte, error) {
	f := &file{}
	f.put(certificateBlock, a.certificate.Raw)
	f.putKey(keyBlock, a.key)
	f.put(gossipBlock, a.GossipKey)
	f.putKey(signInBlock, a.SignInKey)
	return f.rest, f.err
}

// file is a PEM file that is read or written block by block. It keeps its first error.
type file struct {
	rest []byte
	err  error
}

// ended says whether only white space is left.
func (f *file) ended() bool { return len(bytes.TrimSpace(f.rest)) == 0 }

func (f *file) end() error {
	if f.err == nil && !f.ended() {
		f.err = errors.New("there is something behind the last block")
	}
	return f.err
}

// block reads the next block, which must have the given type.
func (f *file) block(kind string) []byte {
	if f.err != nil {
		return nil
	}
	start := bytes.TrimSpace(f.rest)
	block, rest := pem.Decode(start)
	if block == nil || !bytes.HasPrefix(start, []byte("-----BEGIN "+kind+"-----")) ||
		block.Type != kind ||
		len(block.Headers) > 0 {
		f.err = fmt.Errorf("want a PEM block %q", kind)
		return nil
	}
	f.rest = rest
	return block.Bytes
}

func (f *file) certificate() *x509.Certificate {
	data := f.block(certificateBlock)
	if f.err != nil {
		return nil
	}
	certificate, err := x509.ParseCertificate(data)
	if err != nil {
		f.err = fmt.Errorf("certificate: %w", err)
	}
	return certificate
}

func (f *file) key(kind string) ed25519.PrivateKey {
	data := f.block(kind)
	if f.err != nil {
		return nil
	}
	parsed, err := x509.ParsePKCS8PrivateKey(data)
	key, ok := parsed.(ed25519.PrivateKey)
	if err != nil || !ok {
		f.err = fmt.Errorf("%s: not an Ed25519 key", kind)
	}
	return key
}

func (f *file) gossip() []byte {
	data := f.block(gossipBlock)
	if f.err == nil && len(data) != GossipKeyBytes {
		f.err = fmt.Errorf("%s: %d bytes, want %d", gossipBlock, len(data), GossipKeyBytes)
	}
	return data
}

func (f *file) put(kind string, data []byte) {
	f.rest = append(f.rest, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: data})...)
}

func (f *file) putKey(kind string, key ed25519.PrivateKey) {
	data, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		f.err = errors.Join(f.err, err)
		return
	}
	f.put(kind, data)
}

func readFile(path string) ([]byte, error) {
	in, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = in.Close() }() // read only: nothing is lost
	data, err := io.ReadAll(io.LimitReader(in, maxFileBytes+1))
	if err == nil && len(data) > maxFileBytes {
		err = fmt.Errorf("%s has more than %d bytes", path, maxFileBytes)
	}
	return data, err
}

// writeFile makes a new file and links it once it is whole. A half-written file would never be
// replaced.
func writeFile(path string, data []byte) error {
	out, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*.part") // mode 0600
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(out.Name()) }() // the link stays
	_, err = out.Write(data)
	if err := errors.Join(err, out.Sync(), out.Close()); err != nil {
		return err
	}
	return os.Link(out.Name(), path)
}
