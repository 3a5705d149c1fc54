package signin

import (
	"context"
	"encoding/base64"

	"shoal.dev/shoal/apiserver/api"
	"shoal.dev/shoal/apiserver/internal/accounts"
	"shoal.dev/shoal/apiserver/internal/auth"
	"shoal.dev/shoal/apiserver/internal/limits"
	"shoal.dev/shoal/apiserver/internal/operation"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
)

const passkeys = "Passkeys"

// bytesOf decodes base64url, the encoding of authenticators' data (RFC 4648, section 5).
func bytesOf(field, text string) ([]byte, error) {
	data, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || len(data) == 0 {
		return nil, fault.Invalid(fault.InvalidRequest, field, "is base64url without padding")
	}
	return data, nil
}

func textOf(data []byte) string { return base64.RawURLEncoding.EncodeToString(data) }

// Passkey is a credential with which a person signs in without a password.
type Passkey struct {
	ID        ids.ID    `json:"id"`
	Name      string    `json:"name" doc:"Name that the person gave it"`
	Synced    bool      `json:"synced" doc:"The owner may have the passkey on several devices"`
	CreatedAt api.Time  `json:"createdAt"`
	UsedAt    *api.Time `json:"usedAt" doc:"When it was last used; null: never"`
}

// NewPasskey converts a passkey to the API's form.
func NewPasskey(p *client.Passkey) Passkey {
	shown := Passkey{ID: p.ID, Name: p.Name, Synced: p.Synced, CreatedAt: api.Time(p.CreatedAt)}
	if p.UsedAt != 0 {
		at := api.Time(p.UsedAt)
		shown.UsedAt = &at
	}
	return shown
}

// PasskeyList lists the passkeys of an account.
type PasskeyList struct {
	Passkeys []Passkey `json:"passkeys"`
}

// listPasskeys is GET /api/auth/passkeys.
func (r Resource) listPasskeys() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID: "svc_list_passkeys", Routes: operation.Routes("GET /api/auth/passkeys"),
		Group: passkeys, Summary: "Lists the passkeys of the signed-in account",
		Description: "Oldest first. Credentials other than sessions have none.",
		Access:      auth.SignInOnly, Rate: limits.Read,
	}, func(_ context.Context, from *operation.Caller, _ *struct{}) (PasskeyList, error) {
		list := PasskeyList{Passkeys: []Passkey{}}
		if from.Session != nil {
			for _, p := range from.View.Passkeys(from.Session.Account) {
				list.Passkeys = append(list.Passkeys, NewPasskey(p))
			}
		}
		return list, nil
	})
}

type passkeyChallengeRequest struct {
	Body struct {
		CurrentPassword string `json:"currentPassword" required:"true" max:"256"`
	} `body:"json" limit:"4096"`
}

// NewPasskeyChallenge has what navigator.credentials.create needs. The other options are fixed: a
// discoverable credential, user verification required, no attestation.
type NewPasskeyChallenge struct {
	Challenge      string   `json:"challenge" doc:"base64url; valid for 5 minutes"`
	RelyingParty   string   `json:"rpId" doc:"Host name that the passkey is bound to"`
	UserID         string   `json:"userId" doc:"Id of the account, as base64url"`
	UserName       string   `json:"userName" doc:"The account's e-mail address"`
	Algorithms     []int64  `json:"algorithms" doc:"COSE algorithm numbers, preferred one first"`
	KnownPasskeys  []string `json:"excludeCredentials" doc:"base64url ids of passkeys that the account already has"`
	TimeoutSeconds int      `json:"timeoutSeconds"`
}

// challengeSeconds is how long a browser waits for a person.
const challengeSeconds = 240

// askForPasskey is POST /api/auth/passkeys/challenge.
func (r Resource) askForPasskey() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID: "svc_new_passkey_challenge", Routes: operation.Routes("POST /api/auth/passkeys/challenge"),
		Group: passkeys, Summary: "Begins to add a passkey to the signed-in account",
		Description: "The current password is required. A wrong one counts as a sign-in " +
			"attempt. Passkeys are bound to the host name that the browser used, so IP " +
			"addresses cannot have any.",
		Access: auth.SignInOnly, Rate: limits.General, Browser: true,
	}, func(ctx context.Context, from *operation.Caller, in *passkeyChallengeRequest) (
		NewPasskeyChallenge, error) {
		party, err := relyingParty(from)
		if err != nil {
			return NewPasskeyChallenge{}, err
		}
		account, challenge, retry, err := r.Accounts.AskForPasskey(ctx, &from.Principal,
			accounts.Change{Current: in.Body.CurrentPassword, Address: from.Address,
				Device: from.Cookie(deviceCookie)})
		if err != nil {
			from.RetryAfter = retry
			return NewPasskeyChallenge{}, err
		}
		made := NewPasskeyChallenge{Challenge: challenge, RelyingParty: party,
			UserID: textOf(account.ID[:]), UserName: account.Email,
			Algorithms: accounts.PasskeyAlgorithms(), KnownPasskeys: []string{},
			TimeoutSeconds: challengeSeconds}
		for _, known := range from.View.Passkeys(account.ID) {
			made.KnownPasskeys = append(made.KnownPasskeys, textOf(known.Credential))
		}
		return made, nil
	})
}

// relyingParty is the name to which passkeys of the caller's browser are bound.
func relyingParty(from *operation.Caller) (string, error) {
	place, err := base(from)
	if err != nil {
		return "", err
	}
	return accounts.RelyingParty(place)
}

// NewPasskeyInput is the result of navigator.credentials.create.
type NewPasskeyInput struct {
	Name        string `json:"name" required:"true" min:"1" max:"64" pattern:"[^ ]" doc:"Name that the person gives it"`
	ID          string `json:"id" required:"true" pattern:"^([A-Za-z0-9_-]{4})*[A-Za-z0-9_-]{2,4}$" max:"1364" doc:"Id of the credential, as base64url without padding"`
	ClientData  string `json:"clientDataJSON" required:"true" pattern:"^([A-Za-z0-9_-]{4})*[A-Za-z0-9_-]{2,4}$" max:"8192" doc:"base64url without padding"`
	Attestation string `json:"attestationObject" required:"true" pattern:"^([A-Za-z0-9_-]{4})*[A-Za-z0-9_-]{2,4}$" max:"32768" doc:"base64url without padding"`
}

type addPasskeyRequest struct {
	Body NewPasskeyInput `body:"json" limit:"65536"`
}

// addPasskey is POST /api/auth/passkeys.
func (r Resource) addPasskey() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID: "svc_add_passkey", Routes: operation.Routes("POST /api/auth/passkeys"),
		Group: passkeys, Summary: "Adds a passkey to the signed-in account",
		Description: "An account has at most 20 passkeys.",
		Access:      auth.SignInOnly, Rate: limits.General, Browser: true,
		Errors: []fault.Code{fault.PasskeyTaken, fault.LimitReached},
	}, func(ctx context.Context, from *operation.Caller, in *addPasskeyRequest) (Passkey, error) {
		place, err := base(from)
		if err != nil {
			return Passkey{}, err
		}
		n := accounts.NewPasskey{Name: in.Body.Name, Place: place}
		if err := readAll(
			part{"id", in.Body.ID, &n.Answer.Credential},
			part{"clientDataJSON", in.Body.ClientData, &n.Answer.ClientData},
			part{"attestationObject", in.Body.Attestation, &n.Answer.Attestation},
		); err != nil {
			return Passkey{}, err
		}
		made, err := r.Accounts.AddPasskey(ctx, &from.Principal, &n)
		if err != nil {
			return Passkey{}, err
		}
		return NewPasskey(&made), nil
	})
}

// part is a member of an authenticator's answer, and the destination of its bytes.
type part struct {
	field, text string
	to          *[]byte
}

func readAll(parts ...part) (err error) {
	for _, p := range parts {
		if *p.to, err = bytesOf(p.field, p.text); err != nil {
			return err
		}
	}
	return nil
}

type passkeyRequest struct {
	ID ids.ID `path:"id" doc:"The passkey's id"`
}

// removePasskey is DELETE /api/auth/passkeys/{id}.
func (r Resource) removePasskey() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID: "svc_remove_passkey", Routes: operation.Routes("DELETE /api/auth/passkeys/{id}"),
		Group: passkeys, Summary: "Removes a passkey of the signed-in account",
		Description: "Sessions begun with the passkey go on. Removing a passkey that does not " +
			"exist changes nothing.",
		Access: auth.SignInOnly, Rate: limits.General, Browser: true,
	}, func(ctx context.Context, from *operation.Caller, in *passkeyRequest) (operation.None,
		error) {
		return operation.None{}, r.Accounts.RemovePasskey(ctx, &from.Principal, in.ID)
	})
}

// PasskeyChallenge has what navigator.credentials.get needs.
type PasskeyChallenge struct {
	Challenge      string `json:"challenge" doc:"base64url; valid for 5 minutes, in this browser"`
	RelyingParty   string `json:"rpId"`
	TimeoutSeconds int    `json:"timeoutSeconds"`
}

// askPasskey is POST /api/auth/sign-in/passkey/challenge.
func (r Resource) askPasskey() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID:     "svc_passkey_challenge",
		Routes: operation.Routes("POST /api/auth/sign-in/passkey/challenge"), Group: passkeys,
		Summary: "Begins a sign-in with a passkey",
		Description: "The answer names no accounts: the person chooses one of the passkeys " +
			"that the browser knows.",
		Access: auth.Public, Rate: limits.Anonymous, Browser: true,
	}, func(_ context.Context, from *operation.Caller, _ *struct{}) (PasskeyChallenge, error) {
		party, err := relyingParty(from)
		if err != nil {
			return PasskeyChallenge{}, err
		}
		return PasskeyChallenge{Challenge: r.Accounts.AskPasskey(r.formToken(from)),
			RelyingParty: party, TimeoutSeconds: challengeSeconds}, nil
	})
}

// PasskeySignInInput is the result of navigator.credentials.get.
type PasskeySignInInput struct {
	ID            string `json:"id" required:"true" pattern:"^([A-Za-z0-9_-]{4})*[A-Za-z0-9_-]{2,4}$" max:"1364" doc:"Id of the credential, as base64url without padding"`
	ClientData    string `json:"clientDataJSON" required:"true" pattern:"^([A-Za-z0-9_-]{4})*[A-Za-z0-9_-]{2,4}$" max:"8192" doc:"base64url without padding"`
	Authenticator string `json:"authenticatorData" required:"true" pattern:"^([A-Za-z0-9_-]{4})*[A-Za-z0-9_-]{2,4}$" max:"8192" doc:"base64url without padding"`
	Signature     string `json:"signature" required:"true" pattern:"^([A-Za-z0-9_-]{4})*[A-Za-z0-9_-]{2,4}$" max:"4096" doc:"base64url without padding"`
	User          string `json:"userHandle" required:"true" pattern:"^([A-Za-z0-9_-]{4})*[A-Za-z0-9_-]{2,4}$" max:"128" doc:"base64url without padding"`
}

type passkeySignInRequest struct {
	Body PasskeySignInInput `body:"json" limit:"32768"`
}

// signInByPasskey is POST /api/auth/sign-in/passkey.
func (r Resource) signInByPasskey() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID: "svc_sign_in_by_passkey", Routes: operation.Routes("POST /api/auth/sign-in/passkey"),
		Group: passkeys, Summary: "Begins a browser session with a passkey",
		Description: "It works like POST /api/auth/sign-in with a password. Each challenge is " +
			"valid once.",
		Access: auth.Public, Rate: limits.Anonymous, Browser: true,
		Errors: []fault.Code{fault.Unauthorized, fault.AccountDisabled, fault.CustomerBlocked},
	}, func(ctx context.Context, from *operation.Caller, in *passkeySignInRequest) (SignedIn,
		error) {
		place, err := base(from)
		if err != nil {
			return SignedIn{}, err
		}
		a := accounts.PasskeyAttempt{Place: place, Browser: from.Cookie(formCookie),
			Address: from.Address, Device: from.Cookie(deviceCookie)}
		if err := readAll(
			part{"id", in.Body.ID, &a.Answer.Credential},
			part{"clientDataJSON", in.Body.ClientData, &a.Answer.ClientData},
			part{"authenticatorData", in.Body.Authenticator, &a.Answer.Authenticator},
			part{"signature", in.Body.Signature, &a.Answer.Signature},
			part{"userHandle", in.Body.User, &a.Answer.User},
		); err != nil {
			return SignedIn{}, err
		}
		opened, retry, err := r.Accounts.SignInByPasskey(ctx, &a)
		if err != nil {
			from.RetryAfter = retry
			return SignedIn{}, err
		}
		from.SetCookie(operation.SessionCookie, opened.Session, sessionLife)
		from.SetCookie(deviceCookie, opened.Device, deviceLife)
		return SignedIn{CustomerRef: opened.Account.Customer, Admin: opened.Account.Admin}, nil
	})
}

// passkeysPath is where a person sees and changes the passkeys.
const passkeysPath = "/sign-in/passkeys"

// passkeysPage is GET /sign-in/passkeys.
func (r Resource) passkeysPage() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID: "svc_passkeys_page", Routes: operation.Routes("GET " + passkeysPath), Group: passkeys,
		Summary: "Shows the passkeys of the account, or redirects to the sign-in page",
		Access:  auth.Public, Rate: limits.Anonymous, Browser: true, Media: []string{"text/html"},
	}, func(ctx context.Context, from *operation.Caller, _ *struct{}) (operation.Raw, error) {
		return r.showPasskeys(ctx, from, shown{}, 0)
	})
}

func (r Resource) showPasskeys(ctx context.Context, from *operation.Caller, s shown,
	status int) (operation.Raw, error) {
	return r.showOwn(ctx, from, s, status, "passkeys", func(v *client.View, s *shown) {
		s.Passkeys = v.Passkeys(from.Session.Account)
	})
}

type dropPasskeyRequest struct {
	Body struct {
		Token   string `json:"token" max:"1024"`
		Passkey string `json:"passkey" max:"1024"`
	} `body:"form" limit:"4096"`
}

// dropPasskey is POST /sign-in/passkeys.
func (r Resource) dropPasskey() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID: "svc_passkeys_form", Routes: operation.Routes("POST " + passkeysPath), Group: passkeys,
		Summary: "Removes the passkey in the form, and shows the others", Access: auth.Public,
		Rate: limits.Anonymous, Browser: true, Media: []string{"text/html"},
	}, func(ctx context.Context, from *operation.Caller, in *dropPasskeyRequest) (operation.Raw,
		error) {
		return r.endOwn(ctx, from, in.Body.Token, in.Body.Passkey, r.showPasskeys,
			r.Accounts.RemovePasskey)
	})
}

// passkeysScript is GET /sign-in/passkeys.js.
func (r Resource) passkeysScript() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID: "svc_passkeys_script", Routes: operation.Routes("GET /sign-in/passkeys.js"),
		Group: passkeys, Summary: "The script of the pages that talk to authenticators",
		Access: auth.Public, Rate: limits.Anonymous, Media: []string{"text/javascript"},
	}, func(context.Context, *operation.Caller, *struct{}) (operation.Raw, error) {
		return operation.Raw{ContentType: "text/javascript; charset=utf-8", Body: script}, nil
	})
}
