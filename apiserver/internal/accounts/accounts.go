// Package accounts owns how people sign in with an e-mail address and a password. It has the hashes
// of passwords, how often one may be tried, sessions, and known devices. It answers with a session
// or a fault. It knows no HTTP and writes no answer; who calls with a session is package auth's.
package accounts

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
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

// Config is what a Service needs. All of it must be set but HashKiB, Mails, Once and Links.Public.
type Config struct {
	HashKiB   int // memory of a password's hash; 64 MiB unless told
	Client    client.Client
	Limiter   cache.Limiter // counts guesses, for all servers when it is shared
	Clock     clock.Clock
	IDs       ids.Source
	DeviceKey []byte // signs the texts of devices, the same for all servers
	Links     Links  // of letters
	Mails     bool   // e-mails are sent
	Once      *Once  // signs a person in, once; nil: nothing does
	Logger    *slog.Logger
	Count     func(Outcome) // of each attempt to sign in, and of each sign-out
}

// Service signs people in and out. It is safe for concurrent use.
type Service struct {
	Config
	hashes *hasher
	decoy  string // the hash of nobody's password
}

// New makes a service.
func New(config Config) *Service {
	hashes := newHasher(config.HashKiB)
	return &Service{Config: config, hashes: hashes, decoy: hashes.decoy()}
}

// Outcome is what came of an attempt.
type Outcome string

// The outcomes.
const (
	SignedIn  Outcome = "signed_in"
	Refused   Outcome = "refused" // a wrong password, an unknown address or a blocked customer
	TooOften  Outcome = "too_often"
	SignedOut Outcome = "signed_out"
	Changed   Outcome = "password_changed"
	Asked     Outcome = "letter_asked" // for an address that an account has, or none
	Recovered Outcome = "password_recovered"
	SignedUp  Outcome = "signed_up"
)

// Event is something that a person did, or tried.
type Event struct {
	Outcome  Outcome
	Email    string // as it was typed; "" where a session did it
	Customer string // "" where it is not known
	Address  netip.Addr
}

// note tells of each event, once: what is to know of sign-ins hears of them here. Sign-ins and
// sign-outs tell the audit trail by their own commands. What was not even looked at is not told
// there, or a flood would fill the log.
func (s *Service) note(ctx context.Context, e Event) {
	if e.Outcome == Refused {
		_, err := client.Do(ctx, s.Client, client.NoteSignIn{Failed: true}, nil)
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
	Address         netip.Addr // from where
	Device          string     // what the browser shows of before, "" for nothing
}

// Opened is a session that has begun. The texts are the browser's alone.
type Opened struct {
	Session string
	Device  string
	Account client.Account
}

// Guesses, in buckets that fill up again by and by. A network is an address, or a /64 of version 6.
var (
	// guessesOfAddress are those from a network at all accounts.
	guessesOfAddress = cache.Limit{Count: 30, Per: 15 * time.Minute}
	// guessesHere are those from a network, or a known device, at one account.
	guessesHere = cache.Limit{Count: 10, Per: 15 * time.Minute}
	// guessesOfStrangers are those at one account from everywhere but its known devices.
	guessesOfStrangers = cache.Limit{Count: 100, Per: time.Hour}
)

var errWrong = fault.New(fault.Unauthorized, "the e-mail address or the password is wrong")

// SignIn begins a session. An account that there is not takes as long as a wrong password. Faults:
// unauthorized, rate_limited (retry says for how long), unavailable, and to who knows the password
// account_disabled or customer_blocked.
func (s *Service) SignIn(ctx context.Context, a Attempt) (opened Opened, retry time.Duration,
	err error) {
	event := Event{Outcome: Refused, Email: a.Email, Address: a.Address}
	defer func() {
		if code := fault.CodeOf(err); code != fault.Unavailable && code != fault.Internal {
			s.note(ctx, event)
		}
	}()
	if len(a.Email) > maxEmail || utf8.RuneCountInString(a.Password) > maxPassword {
		return Opened{}, 0, errWrong
	}
	view, err := s.Client.Fresh(ctx)
	if err != nil {
		return Opened{}, 0, fmt.Errorf("read the state: %w", err)
	}
	account, hash := view.AccountByEmail(a.Email), s.decoy
	if account != nil {
		hash, event.Customer = account.Password, account.Customer
	}
	if retry := s.takeGuess(ctx, a, account); retry > 0 {
		event.Outcome = TooOften
		return Opened{}, retry, fault.New(fault.RateLimited,
			"too many attempts to sign in: try again in %s", wait(retry))
	}
	if auth.IsMark(hash) { // it has no password, and takes as long as one that has
		account, hash = nil, s.decoy
	}
	right, err := s.hashes.matches(ctx, hash, a.Password)
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

// opened is a session that has begun in a browser, which is a known device from now on.
func (s *Service) opened(secret, device string, account *client.Account) Opened {
	o := Opened{Session: secret, Device: device, Account: *account}
	if _, known := s.knows(device, account.ID); !known {
		o.Device = s.newDevice(account.ID)
	}
	return o
}

// as is a context in which a person does what is proposed, who has just shown the password.
func as(ctx context.Context, account *client.Account) context.Context {
	var actor client.Actor
	if known := client.ActorOf(ctx); known != nil {
		actor = *known
	}
	actor.Subject, actor.Customer, actor.Admin = account.Customer, account.Customer, account.Admin
	return client.WithActor(ctx, &actor)
}

// takeGuess takes one guess from each bucket that it counts for. It answers for how long there is
// none, 0 when there was one. The buckets of an unknown address are like those of a known one.
func (s *Service) takeGuess(ctx context.Context, a Attempt, account *client.Account) time.Duration {
	network := forwarded.Holder(a.Address)
	sum := sha256.Sum256([]byte(strings.ToLower(a.Email)))
	at := hex.EncodeToString(sum[:])
	take := func(bucket string, limit cache.Limit) time.Duration {
		v := s.Limiter.TakeCall(ctx, "sign-in "+bucket, limit)
		if v.Allowed {
			return 0
		}
		return max(v.Retry, time.Second)
	}
	if account != nil {
		if name, known := s.knows(a.Device, account.ID); known {
			return take("device "+name, guessesHere)
		}
	}
	if retry := take("from "+network, guessesOfAddress); retry > 0 {
		return retry
	}
	if retry := take("from "+network+" at "+at, guessesHere); retry > 0 {
		return retry
	}
	return take("at "+at, guessesOfStrangers)
}

// wait is a time for people.
func wait(d time.Duration) string {
	if d <= time.Minute {
		return fmt.Sprintf("%d seconds", int(d.Seconds()+0.5))
	}
	return fmt.Sprintf("%d minutes", int((d+time.Minute-1)/time.Minute))
}

// SignOut ends the session that a caller has, or all of its account. Faults: invalid_request for a
// credential that is no session, unavailable.
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

// NewAccount is an account that is to be made.
type NewAccount struct {
	Email, Password string
	Customer        string // "": one of its own
	Admin           bool
}

// maxEmail is the longest e-mail address, in bytes.
const maxEmail = 254

// Create makes an account. Its e-mail address was checked. Faults: invalid_request, email_taken,
// limit_reached, unavailable.
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
