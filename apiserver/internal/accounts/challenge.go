package accounts

import (
	"crypto/hmac"
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"time"
)

// A challenge is what a passkey signs. It holds its creation time, random bytes and this service's
// signature. So no server stores it, and every server can check it.
const (
	challengeLife = 5 * time.Minute
	// challengeSkew is how far ahead the clock of the server that made it may be.
	challengeSkew = time.Minute
	challengeHead = 8 + 16 // creation time and random bytes
)

// newChallenge makes a challenge. use names everything that it is bound to.
func (s *Service) newChallenge(use string) string {
	var head [challengeHead]byte
	binary.BigEndian.PutUint64(head[:8], uint64(s.Clock.Now().UnixMilli()))
	_, _ = rand.Read(head[8:]) // never fails
	return base64.RawURLEncoding.EncodeToString(append(head[:], s.seal(use, head[:])...))
}

func (s *Service) seal(use string, head []byte) []byte {
	return []byte(sign(s.DeviceKey, "passkey "+use+" "+string(head)))
}

// asked is when a challenge was made, in Unix milliseconds. It is good if this service made it for
// this use and it has not expired.
func (s *Service) asked(use, challenge string) (at int64, good bool) {
	text, err := base64.RawURLEncoding.Strict().DecodeString(challenge)
	if err != nil || len(text) < challengeHead {
		return 0, false
	}
	head := text[:challengeHead]
	if !hmac.Equal(text[challengeHead:], s.seal(use, head)) {
		return 0, false
	}
	at = int64(binary.BigEndian.Uint64(head[:8]))
	age := s.Clock.Now().Sub(time.UnixMilli(at))
	return at, age < challengeLife && age > -challengeSkew
}
