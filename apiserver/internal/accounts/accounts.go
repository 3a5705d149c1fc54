// Package accounts signs people in with an e-mail address and a password. It covers password
// hashes, limits on guesses, sessions and known devices. It returns a session or a fault. It knows
// no HTTP and writes no answer; package auth handles calls made with a session.
package accounts

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"strings"
	"time"
	"unicode/utf8"

	"shoal.dev/shoal/apiserver/internal/auth"
	"shoal.dev/shoal/apiserver/internal/forwarded"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/cache"
	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
)

// Config is what a Service needs. All but HashKiB, Mails, Once and Links.Public must be set.
type Config struct {
	HashKiB   int // memory of a password hash; 0: 64 MiB
	Client    client.Client
	Limiter   cache.Limiter // counts guesses, across all servers if it is shared
	Clock     clock.Clock
	IDs       ids.Source
	DeviceKey []byte // signs device texts; the same for all servers
	Links     Links  // in letters
	Mails     bool   // the service sends e-mails
	Once      *Once  // a one-time sign-in link; nil: none
	Logger    *slog.Logger
	Count     func(Outcome) // called for each attempt to sign in and each sign-out
}

// Service signs people in and out. It is safe for concurrent use.
type Service struct {
	Config
	hashes *hasher
	decoy  string // a hash that no password matches
}

// New makes a service.
func New(config Config) *Service {
	hashes := newHasher(config.HashKiB)
	return &Service{Config: config, hashes: hashes, decoy: hashes.decoy()}
}

// Outcome is the result of an attempt.
type Outcome string

// The outcomes of attempts.
const (
	SignedIn  Outcome = "signed_in"
	Refused   Outcome = "refused" // a wrong password, an unknown address or a blocked customer
	TooOften  Outcome = "too_often"
	SignedOut Outcome = "signed_out"
	Changed   Outcome = "password_changed"
	Asked     Outcome = "letter_asked" // whether or not an account has the address
	Recovered Outcome = "password_recovered"
	SignedUp  Outcome = "signed_up"
)

// Event is something that a person did or tried.
type Event struct {
	Outcome  Outcome
	Email    string // as typed; "" if a session did it
	Customer string // "" if unknown
	Address  netip.Addr
}

// note counts and logs each event, once, and adds refused sign-ins to the audit trail. Sign-ins and
// sign-outs get there by their own commands. Attempts that come too often do not, or a flood would
// fill the trail.
func (s *Service) note(ctx context.Context, e Event) {
	if e.Outcome == Refused {
		var from client.Actor
		if known := client.ActorOf(ctx); known != nil {
			from = *known
		}
		from.Address = forwarded.Holder(e.Address) // else a network has countless addresses
		_, err := client.Do(client.WithActor(ctx, &from), s.Client,
			client.NoteSignIn{Failed: true}, nil)
		if err != nil {
			s.Logger.Warn("the audit trail misses a sign-in that failed", "error", err)
		}
	}
	s.Count(e.Outcome)
	level := slog.LevelInfo
	if e.Outcome == TooOften {
		level = slog.LevelWarn
	}
	s.Logger.Log(context.Background(), level, "sign-in", "outcome", e.Outcome, "email", e.Email,
		"customer", e.Customer, "address", e.Address)
}

// Attempt is a person who wants to sign in.
type Attempt struct {
	Email, Password string
	Address         netip.Addr // of the person
	Device          string     // the device text that the browser has kept, "" for none
}

// Opened is a session that has begun. Only the browser keeps its texts.
type Opened struct {
	Session string
	Device  string
	Account client.Account
}

// Limits on guesses, in buckets that refill over time. A network is an IPv4 address or an IPv6 /64.
var (
	// guessesOfAddress limits guesses from one network, at all accounts.
	guessesOfAddress = cache.Limit{Count: 30, Per: 15 * time.Minute}
	// guessesOfSite limits guesses from the 65,536 networks of an IPv6 /48 together.
	guessesOfSite = cache.Limit{Count: 300, Per: 15 * time.Minute}
	// guessesHere limits guesses from one network or known device, at one account.
	guessesHere = cache.Limit{Count: 10, Per: 15 * time.Minute}
	// guessesOfStrangers limits guesses at one account from everywhere except its known devices.
	guessesOfStrangers = cache.Limit{Count: 100, Per: time.Hour}
	// guessesOfDevices limits guesses from all known devices of one account, as their hashes are
	// served first.
	guessesOfDevices = cache.Limit{Count: 100, Per: time.Hour}
)

var errWrong = fault.New(fault.Unauthorized, "the e-mail address or the password is wrong")

// SignIn begins a session. A missing account takes as long as a wrong password. Faults:
// unauthorized, rate_limited (retry says for how long), unavailable. With the right password also
// account_disabled and customer_blocked.
func (s *Service) SignIn(ctx context.Context, a Attempt) (opened Opened, retry time.Duration,
	err error) {
	if len(a.Email) > maxEmail || utf8.RuneCountInString(a.Password) > maxPassword {
		return Opened{}, 0, errWrong // no guess: it takes none, and the audit trail has none
	}
	event := Event{Outcome: Refused, Email: a.Email, Address: a.Address}
	defer func() {
		if code := fault.CodeOf(err); code != fault.Unavailable && code != fault.Internal {
			s.note(ctx, event)
		}
	}()
	view, err := s.Client.Fresh(ctx)
	if err != nil {
		return Opened{}, 0, fmt.Errorf("read the state: %w", err)
	}
	account, hash := view.AccountByEmail(a.Email), s.decoy
	if account != nil {
		hash, event.Customer = account.Password, account.Customer
	}
	retry, queue := s.takeGuess(ctx, a, account)
	if retry > 0 {
		event.Outcome = TooOften
		return Opened{}, retry, fault.New(fault.RateLimited,
			"too many attempts to sign in: try again in %s. %s", wait(retry), s.otherWays())
	}
	if auth.IsMark(hash) { // without a password it takes as long as with one
		account, hash = nil, s.decoy
	}
	right, err := s.hashes.matches(ctx, queue, hash, a.Password)
	if errors.Is(err, errBusy) {
		return Opened{}, 0, fault.New(fault.Unavailable, "%s. %s", errBusy.Detail, s.otherWays())
	}
	if err != nil {
		return Opened{}, 0, err
	}
	if !right || account == nil {
		return Opened{}, 0, errWrong
	}
	secret := auth.NewSessionSecret()
	if _, err := client.Do(as(ctx, account), s.Client, client.OpenSession{Account: account.ID,
		Password: account.Password, Hash: auth.HashSession(secret)}, nil); err != nil {
		return Opened{}, 0, err
	}
	event.Outcome = SignedIn
	return s.opened(secret, a.Device, account), 0, nil
}

// opened completes a session that has begun. Its browser is a known device from now on.
func (s *Service) opened(secret, device string, account *client.Account) Opened {
	o := Opened{Session: secret, Device: device, Account: *account}
	if _, known := s.knows(device, account.ID); !known {
		o.Device = s.newDevice(account.ID)
	}
	return o
}

// as is a context in which the person who has just shown the password is the actor.
func as(ctx context.Context, account *client.Account) context.Context {
	var actor client.Actor
	if known := client.ActorOf(ctx); known != nil {
		actor = *known
	}
	actor.Subject, actor.Customer, actor.Admin = account.Customer, account.Customer, account.Admin
	return client.WithActor(ctx, &actor)
}

// takeGuess takes one guess from each bucket that applies. It returns how long to wait, 0 if the
// guess is allowed, and the queue of its hash. Unknown addresses have buckets like known ones.
func (s *Service) takeGuess(ctx context.Context, a Attempt, account *client.Account) (
	retry time.Duration, queue int) {
	if account != nil {
		if name, known := s.knows(a.Device, account.ID); known {
			return s.take(ctx,
				bucket{"sign-in device " + name, guessesHere},
				bucket{"sign-in devices of " + account.ID.String(), guessesOfDevices}), ofKnown
		}
	}
	network := "sign-in from " + forwarded.Holder(a.Address)
	sum := sha256.Sum256([]byte(strings.ToLower(a.Email)))
	at := hex.EncodeToString(sum[:])
	buckets := []bucket{{network, guessesOfAddress}}
	if site := forwarded.Site(a.Address); site != "" {
		buckets = append(buckets, bucket{"sign-in from " + site, guessesOfSite})
	}
	buckets = append(buckets, bucket{network + " at " + at, guessesHere},
		bucket{"sign-in at " + at, guessesOfStrangers})
	return s.take(ctx, buckets...), ofStrangers
}

// bucket names what a limit counts.
type bucket struct {
	name  string
	limit cache.Limit
}

// take takes one use from each bucket, up to the first that is empty. It returns how long to wait
// for that one, 0 if there is none.
func (s *Service) take(ctx context.Context, buckets ...bucket) time.Duration {
	for _, b := range buckets {
		if v := s.Limiter.TakeCall(ctx, b.name, b.limit); !v.Allowed {
			return max(v.Retry, time.Second)
		}
	}
	return 0
}

// otherWays says how a person gets in without waiting, while others guess or flood. A passkey
// cannot be guessed. A link makes the browser a known device.
func (s *Service) otherWays() string {
	from := "an administrator"
	if s.SendsLetters() {
		from = "an e-mail"
	}
	return "Or use a passkey now, or set a new password with a link from " + from
}

// wait formats a duration for people.
func wait(d time.Duration) string {
	if d <= time.Minute {
		return fmt.Sprintf("%d seconds", int(d.Seconds()+0.5))
	}
	return fmt.Sprintf("%d minutes", int((d+time.Minute-1)/time.Minute))
}

// SignOut ends the caller's session, or all sessions of its account. Faults: invalid_request for a
// credential that is not a session, unavailable.
func (s *Service) SignOut(ctx context.Context, p *auth.Principal, from netip.Addr,
	everywhere bool) error {
	if p.Session == nil {
		return fault.New(fault.InvalidRequest, "the credential is no session of a browser: a token "+
			"ends by itself, and a key by DELETE /api/key/{id}")
	}
	end := client.EndSessions{Account: p.Session.Account}
	if !everywhere {
		end.Hash = p.Session.Hash
	}
	if _, err := client.Do(ctx, s.Client, end, nil); err != nil {
		return err
	}
	s.note(ctx, Event{Outcome: SignedOut, Customer: p.Customer, Address: from})
	return nil
}

// NewAccount is an account to be created.
type NewAccount struct {
	Email, Password string
	Customer        string // "": a new one for the account
	Admin           bool
}

// maxEmail is the longest e-mail address, in bytes.
const maxEmail = 254

// Create makes an account. The caller has checked the e-mail address. Faults: invalid_request,
// email_taken, limit_reached, unavailable.
func (s *Service) Create(ctx context.Context, n NewAccount) (client.Account, error) {
	if err := checkPassword("password", n.Email, n.Password); err != nil {
		return client.Account{}, err
	}
	hash, err := s.hashes.make(ctx, n.Password)
	if err != nil {
		return client.Account{}, err
	}
	id := s.IDs.New()
	if n.Customer == "" {
		n.Customer = id.String()
	}
	return client.Do(ctx, s.Client, client.CreateAccount{ID: id, Email: n.Email,
		Customer: n.Customer, Password: hash, Admin: n.Admin, Entry: s.IDs.New()}, nil)
}
