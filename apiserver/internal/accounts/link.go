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

// LinkPath is where the links of letters lead.
const LinkPath = "/sign-in/new-password"

// Links are the addresses that letters carry. A link is a letter's id with this service's
// signature, so that who reads the state, or a backup of it, can follow none.
type Links struct {
	Key    []byte // signs, the same for all servers
	Public string // where browsers find the service, without a path; "": nobody knows
}

// To is the link of a letter.
func (l Links) To(letter ids.ID) string {
	return l.Public + LinkPath + "?link=" + letter.String() + "." + sign(l.Key, letter.String())
}

// read is the letter that a link's text is of.
func (l Links) read(text string) (letter ids.ID, good bool) {
	name, signature, _ := strings.Cut(text, ".")
	if !hmac.Equal([]byte(signature), []byte(sign(l.Key, name))) {
		return ids.ID{}, false
	}
	letter, err := ids.Parse(name)
	return letter, err == nil
}

// sign is a text's signature with a key.
func sign(key []byte, text string) string {
	sum := hmac.New(sha256.New, key)
	_, _ = sum.Write([]byte(text)) // never fails
	return base64.RawURLEncoding.EncodeToString(sum.Sum(nil))
}

// maxPublic is the longest public address, in bytes.
const maxPublic = 256

// CheckPublic says why an address cannot be the public one of the service.
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
