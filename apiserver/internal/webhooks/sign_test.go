package webhooks

import (
	"encoding/base64"
	"strings"
	"testing"
)

// TestSign checks signatures against the example of the Standard Webhooks libraries.
func TestSign(t *testing.T) {
	secret, err := base64.StdEncoding.DecodeString("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	if err != nil {
		t.Fatal(err)
	}
	got := sign("msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, []byte(`{"test": 2432232314}`), secret)
	if want := "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="; got != want {
		t.Errorf("signed %s, want %s", got, want)
	}
	both := sign("m", 1, nil, secret, NewSecret())
	if one := sign("m", 1, nil, secret); !strings.HasPrefix(both, one+" v1,") {
		t.Errorf("by two secrets %s, by the first %s", both, one)
	}
	if shown := ShowSecret(secret); shown != "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw" {
		t.Errorf("shown as %s", shown)
	}
	if n := len(NewSecret()); n < 24 || n > 64 {
		t.Errorf("a secret of %d bytes", n)
	}
}
