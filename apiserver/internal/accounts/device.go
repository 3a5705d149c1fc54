package accounts

import (
	"crypto/hmac"
	"crypto/rand"
	"strings"

	"shoal.dev/shoal/pkg/ids"
)

// A device is a browser in which an account has signed in before. It shows a text that this service
// signed then, and has its own limit on guesses. Someone who guesses at an account from elsewhere
// uses up the strangers' limit, and does not lock its owner out.

// newDevice makes the text of a new device of an account.
func (s *Service) newDevice(account ids.ID) string {
	name := account.String() + "." + rand.Text()
	return name + "." + sign(s.DeviceKey, name)
}

// knows says whether the text belongs to a device of the account, and names the device.
func (s *Service) knows(device string, account ids.ID) (name string, known bool) {
	at := strings.LastIndexByte(device, '.')
	if at < 0 || !hmac.Equal([]byte(device[at+1:]), []byte(sign(s.DeviceKey, device[:at]))) {
		return "", false
	}
	return device[:at], strings.HasPrefix(device, account.String()+".")
}
