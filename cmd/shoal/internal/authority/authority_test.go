package authority

import (
	"crypto/ed25519"
	"encoding/base64"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"shoal.dev/shoal/controlplane/identity"
)

// TestTheAuthoritySignsOperatorsIn: its file alone is enough, wherever it was copied to, and
// whatever key another command left beside it.
func TestTheAuthoritySignsOperatorsIn(t *testing.T) {
	dir := t.TempDir()
	if _, err := SignToken(dir, "", false, time.Now()); err != nil { // makes a key of its own
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
