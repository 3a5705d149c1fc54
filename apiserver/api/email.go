package api

import (
	"net/mail"

	"shoal.dev/shoal/pkg/fault"
)

// MaxEmail is the longest address that mail can be sent to, in bytes (RFC 5321, 4.5.3.1.3).
const MaxEmail = 254

// CheckEmail refuses anything but a bare address.
func CheckEmail(text string) fault.List {
	parsed, err := mail.ParseAddress(text)
	if err != nil || parsed.Address != text || len(text) > MaxEmail {
		return fault.List{fault.Invalid(fault.InvalidRequest, "email",
			"must be an e-mail address of at most %d bytes", MaxEmail)}
	}
	return nil
}
