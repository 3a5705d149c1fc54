package accounts

import (
	"crypto/hmac"
	"crypto/rand"
	"strings"

	"shoal.dev/shoal/pkg/ids"
)

// A device is a browser that an account has signed in with before. It shows a text that this
// service signed then, and has guesses of its own. Whoever guesses at an account from elsewhere
// uses up those of strangers, and does not lock its owner out.

// newDevice is the text of a new device of an account.
func (s *Service) newDevice(account ids.ID) string {
	name := account.String() + "." + rand.Text()
	return name + "." + sign(s.DeviceKey, name)
}

// knows says whether the text is that of a device of the account, and which.
func (s *Service) knows(device string, account ids.ID) (name string, known bool) {
	at := strings.LastIndexByte(device, '.')
	if at < 0 || !hmac.Equal([]byte(device[at+1:]), []byte(sign(s.DeviceKey, device[:at]))) {
		return "", false
	}
	return device[:at], strings.HasPrefix(device, account.String()+".")
}
