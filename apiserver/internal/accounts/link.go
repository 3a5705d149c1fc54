package accounts

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"net/netip"
	"net/url"
	"strings"

	"shoal.dev/shoal/pkg/ids"
)

// LinkPath is the path of the links in letters.
const LinkPath = "/sign-in/new-password"

// Links makes and reads the links in letters. A link is a letter's id with this service's
// signature. So someone who reads the state or a backup cannot forge a link.
type Links struct {
	Key    []byte // signs; the same for all servers
	Public string // where browsers find the service, without a path; "": unknown
}

// To is the link for a letter.
func (l Links) To(letter ids.ID) string {
	return l.Public + LinkPath + "?link=" + letter.String() + "." + sign(l.Key, letter.String())
}

// read is the letter to which a link's text belongs.
func (l Links) read(text string) (letter ids.ID, good bool) {
	name, signature, _ := strings.Cut(text, ".")
	if !hmac.Equal([]byte(signature), []byte(sign(l.Key, name))) {
		return ids.ID{}, false
	}
	letter, err := ids.Parse(name)
	return letter, err == nil
}

// sign returns a text's signature by key.
func sign(key []byte, text string) string {
	sum := hmac.New(sha256.New, key)
	_, _ = sum.Write([]byte(text)) // never fails
	return base64.RawURLEncoding.EncodeToString(sum.Sum(nil))
}

// maxPublic is the longest public address, in bytes.
const maxPublic = 256

// CheckPublic says why an address cannot be the public address of the service.
func CheckPublic(address string) error {
	at, err := url.Parse(address)
	if err != nil || len(address) > maxPublic || at.Hostname() == "" ||
		at.Scheme != "https" && (at.Scheme != "http" || !isHere(at.Hostname())) {
		return errors.New("want https://HOST, or http:// on this machine")
	}
	if address != at.Scheme+"://"+at.Host {
		return errors.New("it has a host, and a port, and nothing else, not even a / at its end")
	}
	return nil
}

// isHere says whether a host is this machine.
func isHere(host string) bool {
	address, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && address.IsLoopback()
}
