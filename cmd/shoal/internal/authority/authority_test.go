package authority

import (
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"shoal.dev/shoal/apiserver"
	"shoal.dev/shoal/controlplane/identity"
)

// TestNoTokenOfAWrongDirectory: where no server has started, nothing signs or is created.
func TestNoTokenOfAWrongDirectory(t *testing.T) {
	dir := t.TempDir()
	if _, err := SignToken(dir, "", true, time.Now()); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// TestTheAuthoritySignsOperatorsIn: the authority's file is enough, wherever it was copied to, and
// whatever key a server left beside it.
func TestTheAuthoritySignsOperatorsIn(t *testing.T) {
	dir := t.TempDir()
	_, other, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := apiserver.PlaceSignInKey(dir, other); err != nil {
		t.Fatal(err)
	}
	authority, err := identity.NewAuthority("prod", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if err := authority.Write(filepath.Join(dir, FileName)); err != nil {
		t.Fatal(err)
	}
	token, err := SignToken(dir, "", true, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	at := strings.LastIndex(token, ".")
	signature, err := base64.RawURLEncoding.DecodeString(token[at+1:])
	if err != nil {
		t.Fatal(err)
	}
	if !ed25519.Verify(authority.SignInKey.Public().(ed25519.PublicKey), []byte(token[:at]),
		signature) {
		t.Error("the cluster's servers would refuse the token")
	}
}
