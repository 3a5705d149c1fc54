package fsm

import (
	"fmt"

	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
)

// Bounds of decision 5, and how long results are kept for proposers that missed them.
const (
	claimKeptMillis   = 24 * 60 * 60 * 1000
	claimHeldMillis   = 2 * 60 * 1000
	resultKeptMillis  = 15 * 60 * 1000
	revokedKeptMillis = 400 * 24 * 60 * 60 * 1000
	maxClaims         = 10_000    // per customer
	maxClaimBytes     = 2_000_000 // per customer; the last record may exceed it
	maxStopClaims     = 1_000     // per customer, beyond maxClaims: only stops
	maxStopClaimBytes = 100_000   // per customer, beyond maxClaimBytes: only stops
	maxExpiredPerTick = 5_000
	maxSharedPerTick  = 1_000 // recipes moved to contents
)

// storedFault is a fault as a record stores it.
type storedFault struct {
	Code   fault.Code `cbor:"1,keyasint"`
	Detail string     `cbor:"2,keyasint,omitempty"`
	Field  string     `cbor:"3,keyasint,omitempty"`
}

// applyOnce applies a command unless its id or its idempotency key was applied before.
func (m *FSM) applyOnce(tx *state.Tx, env *command.Envelope, known entry,
	payload command.Payload) Result {
	if stored := tx.Result(env.ID); stored != nil {
		return m.heardAgain(tx, stored, payload)
	}
	if env.Actor != nil && tx.Customer(env.Actor.Customer).Removed() {
		return Result{Err: errRemoved()} // admitted before the removal
	}
	if env.Call != nil {
		if replay, done := m.admitCall(tx, env, payload); done {
			return replay
		}
	}
	tx.By(env.Actor)
	var value any
	err := checkTrail(tx, env, payload)
	if err == nil {
		value, err = known.apply(tx, payload)
	}
	result := Result{Value: value}
	if err != nil {
		result = Result{Err: notCoded(err)}
	} else {
		audit(tx, env, payload)
	}
	if known.Kept {
		stored := &state.StoredResult{Command: env.ID, Number: uint16(env.Number),
			Expires: tx.Now + resultKeptMillis}
		if !m.looksUp(tx, payload, result) {
			if stored.Kept = m.brief(tx, payload, result); stored.Kept == nil {
				stored.Result, stored.Fault = m.save(result)
			}
		}
		tx.PutResult(stored)
	}
	if env.Call != nil {
		m.finishCall(tx, env, payload, result)
	}
	return result
}

// heardAgain answers a proposer that repeats a command because it missed the result.
func (m *FSM) heardAgain(tx *state.Tx, stored *state.StoredResult, payload command.Payload) Result {
	if stored.Kept != nil {
		return m.remake(stored.Number, stored.Kept, payload, stored.Expires-resultKeptMillis)
	}
	number := command.Number(stored.Number)
	lookUp := m.lookUps[number]
	if lookUp == nil || stored.Result != nil || stored.Fault != nil {
		return m.load(stored.Number, stored.Result, stored.Fault)
	}
	if given := payload.Declaration().Number; given != number {
		return Result{Err: fault.New(fault.Internal, "the id was used for command %d, not %d",
			number, given)}
	}
	value, err := lookUp(tx, payload)
	if err != nil {
		return Result{Err: notCoded(err)}
	}
	return Result{Value: value}
}

// admitCall looks the idempotency key up. done means that the answer is known without applying the
// command.
func (m *FSM) admitCall(tx *state.Tx, env *command.Envelope,
	payload command.Payload) (answer Result, done bool) {
	if _, releases := payload.(command.ReleaseClaimPayload); releases {
		return Result{}, false // finishCall handles it
	}
	call := env.Call
	claim := tx.Claim(call.Customer, call.Operation, call.Key)
	switch {
	case claim == nil && call.AnswerOnly: // its checks may have failed
		return Result{Err: fault.New(fault.Unavailable,
			"the answer under this key has just expired; ask again")}, true
	case claim == nil:
		customer := tx.Customer(call.Customer)
		if customer == nil && opens(payload) {
			return Result{}, false
		}
		if customer == nil {
			return Result{Err: fault.New(fault.Unauthorized, "the customer does not exist")}, true
		}
		if !stops(tx, payload) && full(customer) {
			return Result{Err: fault.New(fault.IdempotencyOverflow,
				"%d idempotency keys, with %d bytes, are kept for this customer; they go after "+
					"24 hours", customer.Claims, customer.ClaimBytes)}, true
		}
		return Result{}, false
	case claim.Request != call.Request:
		return Result{Err: fault.Invalid(fault.IdempotencyReused, "Idempotency-Key",
			"the key was used for another request")}, true
	case claim.Done:
		result := m.replay(claim, payload)
		result.Replayed, result.Body = true, claim.Body
		return result, true
	case claim.Ticket == call.Ticket && !call.Ticket.IsZero():
		return Result{}, false
	default:
		return Result{Err: fault.New(fault.IdempotencyInFlight,
			"the first call with this key is still running")}, true
	}
}

// finishCall writes the idempotency record: a claim under way, or the result. After a release or a
// transient refusal it leaves none.
func (m *FSM) finishCall(tx *state.Tx, env *command.Envelope, payload command.Payload,
	result Result) {
	call := env.Call
	old := tx.Claim(call.Customer, call.Operation, call.Key)
	switch payload.(type) {
	case command.ReleaseClaimPayload:
		if old != nil && !old.Done && old.Ticket == call.Ticket {
			dropClaim(tx, old)
		}
		return
	case command.ClaimCallPayload:
		if result.Err != nil {
			return // nothing is claimed
		}
		under := result.Value.(*state.Claim)
		claim := tx.NewClaim(call.Customer, call.Operation, call.Key)
		claim.List, claim.Node, claim.Boot = under.List, under.Node, under.Boot
		claim.Request, claim.Ticket, claim.Expires = call.Request, env.ID, tx.Now+claimHeldMillis
		addClaim(tx, claim)
		return
	}
	customer := tx.Customer(call.Customer)
	if customer == nil || old == nil && fullForStops(customer) {
		return // a refusal of somebody without a record, or a stop
	}
	if passing(result.Err) && tx.ClusterVersion() >= 2 {
		if old != nil {
			dropClaim(tx, old)
		}
		return
	}
	record := tx.NewClaim(call.Customer, call.Operation, call.Key)
	record.Request, record.Done, record.Number = call.Request, true, uint16(env.Number)
	record.Body, record.Expires = call.Body, tx.Now+claimKeptMillis
	if record.Kept = m.brief(tx, payload, result); record.Kept == nil {
		record.Result, record.Fault = m.save(result)
	}
	if old != nil {
		dropClaim(tx, old)
	}
	addClaim(tx, record)
}

// passing reports whether a refusal is transient, so that the same call may succeed later. Such
// refusals are not kept (decision 5). The call succeeds after a payment, a wait or a recovery of
// the service, after an unblocking, or once billing is on.
func passing(err error) bool {
	if err == nil {
		return false
	}
	code := fault.CodeOf(err)
	status := fault.Lookup(code).Status
	return status == 402 || status == 429 || status >= 500 || code == fault.CustomerBlocked ||
		code == fault.TopUpNotConfigured
}

// full reports whether a customer has as many idempotency records as it may have.
func full(c *state.Customer) bool {
	return c.Claims >= maxClaims || c.ClaimBytes >= maxClaimBytes
}

// fullForStops reports whether it has as many as it may have with those of stops.
func fullForStops(c *state.Customer) bool {
	return c.Claims >= maxClaims+maxStopClaims || c.ClaimBytes >= maxClaimBytes+maxStopClaimBytes
}

// stops reports whether a command only ends runs, which is never refused for want of a record: runs
// cost money. Stops have records beyond the bounds of other calls, so that a repeated one ends no
// later run. Past those a stop has no record, and a repeated one ends what runs then.
func stops(tx *state.Tx, payload command.Payload) bool {
	switch payload.(type) {
	case command.StopRunPayload, command.StopGroupPayload:
		return tx.ClusterVersion() >= 2
	}
	return false
}

func addClaim(tx *state.Tx, c *state.Claim) {
	tx.PutClaim(c)
	customer := *tx.Customer(c.Customer)
	customer.Claims++
	customer.ClaimBytes += c.Bytes()
	tx.PutCustomer(&customer)
}

func dropClaim(tx *state.Tx, c *state.Claim) {
	tx.RemoveClaim(c)
	customer := *tx.Customer(c.Customer)
	customer.Claims--
	customer.ClaimBytes -= c.Bytes()
	tx.PutCustomer(&customer)
}

// save encodes a result for a record.
func (m *FSM) save(result Result) (value, failure []byte) {
	var err error
	if result.Err != nil {
		f := notCoded(result.Err)
		failure, err = m.codec.Marshal(storedFault{Code: f.Code, Detail: f.Detail, Field: f.Field})
	} else {
		value, err = m.codec.Marshal(result.Value)
	}
	if err != nil {
		panic(fmt.Sprintf("fsm: a result cannot be encoded: %v", err)) // results are plain structs
	}
	return value, failure
}

// load decodes what save encoded.
func (m *FSM) load(number uint16, value, failure []byte) Result {
	if len(failure) > 0 {
		var f storedFault
		if err := m.codec.Unmarshal(failure, &f); err != nil {
			panic(fmt.Sprintf("fsm: a stored fault cannot be decoded: %v", err))
		}
		return Result{Err: &fault.Error{Code: f.Code, Detail: f.Detail, Field: f.Field}}
	}
	known, ok := m.registry[command.Number(number)]
	if !ok {
		panic(fmt.Sprintf("fsm: a stored result is of the unknown command %d", number))
	}
	decoded, err := known.load(m.codec, value)
	if err != nil {
		panic(fmt.Sprintf("fsm: a stored result cannot be decoded: %v", err))
	}
	return Result{Value: decoded}
}

// claimCall begins a long call. A call with a link list needs disk space.
func claimCall(tx *state.Tx, p command.ClaimCallPayload) (*state.Claim, error) {
	if !p.List.IsZero() && tx.IsShort() {
		return nil, errShort()
	}
	return &state.Claim{List: p.List, Node: p.Node, Boot: p.Boot}, nil
}

func renewClaims(tx *state.Tx, p command.RenewClaimsPayload) (command.None, error) {
	for _, c := range tx.ClaimsUnderWay(p.Node) {
		if c.Boot != p.Boot || !p.Ticket.IsZero() && c.Ticket != p.Ticket {
			continue
		}
		renewed := *c
		renewed.Expires = tx.Now + claimHeldMillis
		tx.PutClaim(&renewed)
	}
	return command.None{}, nil
}

func releaseClaim(*state.Tx, command.ReleaseClaimPayload) (command.None, error) {
	return command.None{}, nil
}

// noteRevoked marks a revocation, so that a restore does not undo it.
func noteRevoked(tx *state.Tx, id ids.ID) {
	if tx.ClusterVersion() >= 2 { // version 1 lacks the table
		tx.PutRevoked(&state.Revoked{ID: id, At: tx.Now})
	}
}

// expireRevoked removes marks older than any backup that may be restored, a bounded number at a
// time.
func expireRevoked(tx *state.Tx) {
	var old []*state.Revoked
	tx.RevokedByAge(func(r *state.Revoked) bool {
		if r.At > tx.Now-revokedKeptMillis || len(old) == maxExpiredPerTick {
			return false
		}
		old = append(old, r)
		return true
	})
	for _, r := range old {
		tx.RemoveRevoked(r)
	}
}

// tick removes what is due, a bounded number at a time.
func tick(tx *state.Tx, _ command.TickPayload) (command.None, error) {
	var claims []*state.Claim
	tx.ClaimsByExpiry(func(c *state.Claim) bool {
		if c.Expires > tx.Now || len(claims) == maxExpiredPerTick {
			return false
		}
		claims = append(claims, c)
		return true
	})
	for _, c := range claims {
		dropClaim(tx, c)
	}
	var results []*state.StoredResult
	tx.ResultsByExpiry(func(r *state.StoredResult) bool {
		if r.Expires > tx.Now || len(results) == maxExpiredPerTick {
			return false
		}
		results = append(results, r)
		return true
	})
	for _, r := range results {
		tx.RemoveResult(r)
	}
	expirePreviews(tx)
	expireDailies(tx)
	expireRevoked(tx)
	expireWork(tx)
	expireNotices(tx)
	expireDeliveries(tx)
	expireTopUps(tx)
	expireSubscriptions(tx)
	tx.TellFailures()
	expireSessions(tx)
	expireTickets(tx)
	expireGrants(tx)
	expireLetters(tx)
	expireFeedback(tx)
	expireExports(tx)
	tx.ShareRecipes(maxSharedPerTick)
	return command.None{}, nil
}
