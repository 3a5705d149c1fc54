// Package fsm implements the commands: the deterministic state machine over state. The same log
// gives the same state on every node, so there is no clock, randomness, map order, input or output.
// The package does not know Raft, so tests and the protocol simulation run the same code.
package fsm

import (
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"sync/atomic"

	"shoal.dev/shoal/controlplane/internal/codec"
	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
)

// Observer sees every applied command and the runs it ended, in order, on the state machine's
// goroutine. It must be quick and must not propose.
type Observer func(payload command.Payload, result any, ended []ids.ID)

// FSM applies commands to a store.
type FSM struct {
	codec    *codec.Codec // of results
	commands *codec.Codec // of the log
	first    *codec.Codec // of the log, with the bounds of cluster version 1
	lenient  *codec.Codec // of what older versions left in the log
	registry map[command.Number]entry
	answers  map[command.Number]answer
	lookUps  map[command.Number]lookUp
	store    atomic.Pointer[state.Store]
	observer atomic.Pointer[Observer]
	applied  atomic.Uint64
}

// New makes a state machine with an empty store.
func New() *FSM {
	m := &FSM{codec: codec.New(), commands: codec.NewForCommands(),
		first: codec.NewForFirstCommands(), lenient: codec.NewLenient(),
		registry: map[command.Number]entry{}, answers: answers(), lookUps: lookUps()}
	m.store.Store(state.NewStore())
	registerAll(m)
	return m
}

// Store returns the state. A restore replaces it.
func (m *FSM) Store() *state.Store { return m.store.Load() }

// Observe sets the observer, nil for none.
func (m *FSM) Observe(o Observer) {
	if o == nil {
		m.observer.Store(nil)
		return
	}
	m.observer.Store(&o)
}

// Applied counts the commands applied since the process started.
func (m *FSM) Applied() uint64 { return m.applied.Load() }

// entry is the registry's entry of a command.
type entry struct {
	command.Declaration
	grew   bool // its payload has members that version 1 lacks
	free   bool // its payload may be nested to any depth
	decode func(*codec.Codec, []byte) (command.Payload, error)
	load   func(*codec.Codec, []byte) (any, error) // decodes a stored result
	apply  func(*state.Tx, command.Payload) (any, error)
}

// register adds a command. It panics if the command has no proposer, or its number is taken.
func register[P command.Of[R], R any](m *FSM, apply func(*state.Tx, P) (R, error)) {
	var none P
	declared := none.Declaration()
	if _, twice := m.registry[declared.Number]; twice || declared.By == "" {
		panic(fmt.Sprintf("fsm: %T, command %d: registered twice, or nobody may propose it", none,
			declared.Number))
	}
	m.registry[declared.Number] = entry{
		Declaration: declared,
		grew:        command.Grew(reflect.TypeFor[P]()),
		free:        holdsAnything(reflect.TypeFor[P](), nil),
		decode: func(c *codec.Codec, body []byte) (command.Payload, error) {
			var payload P
			err := c.Unmarshal(body, &payload)
			return payload, err
		},
		load: func(c *codec.Codec, data []byte) (any, error) {
			var result R
			err := c.Unmarshal(data, &result)
			return result, err
		},
		apply: func(tx *state.Tx, payload command.Payload) (any, error) {
			return apply(tx, payload.(P))
		},
	}
}

func registerAll(m *FSM) {
	register(m, createCluster)
	register(m, registerNode)
	register(m, assignShards)
	register(m, tick)
	register(m, removeNode)
	register(m, drainNode)
	register(m, activateVersion)
	register(m, openCustomer)
	register(m, mintKey)
	register(m, revokeKey)
	register(m, touchKeys)
	register(m, putGroup)
	register(m, putScraper)
	register(m, claimCall)
	register(m, renewClaims)
	register(m, releaseClaim)
	register(m, launchRun)
	register(m, stopRun)
	register(m, extendWindow)
	register(m, settleReceipts)
	register(m, redispatch)
	register(m, closeRun)
	register(m, forgetUndone)
	register(m, adjustWallet)
	register(m, putPrices)
	register(m, setPrices)
	register(m, putSchema)
	register(m, deleteSchema)
	register(m, deleteScraper)
	register(m, previewDelete)
	register(m, enqueueWork)
	register(m, exchangeWork)
	register(m, dropArchived)
	register(m, expireRuns)
	register(m, signUp)
	register(m, renameCustomer)
	register(m, changeInfo)
	register(m, blockCustomer)
	register(m, unblockCustomer)
	register(m, readNotices)
	register(m, preferNotices)
	register(m, putRetention)
	register(m, openTopUp)
	register(m, payTopUp)
	register(m, endTopUp)
	register(m, reverseTopUp)
	register(m, forgetRemovals)
	register(m, takeMails)
	register(m, recordMails)
	register(m, deleteRun)
	register(m, noteRowsRemoved)
	register(m, forgetDeletedRuns)
	register(m, putThreshold)
	register(m, deleteGroup)
	register(m, deleteMembers)
	register(m, forgetGroup)
	register(m, putWebhook)
	register(m, rotateWebhook)
	register(m, deleteWebhook)
	register(m, recordDeliveries)
	register(m, sendDelivery)
	register(m, dropAudit)
	register(m, noteSignIn)
	register(m, createAccount)
	register(m, openSession)
	register(m, endSessions)
	register(m, touchSessions)
	register(m, issueTicket)
	register(m, takeTicket)
	register(m, issueCode)
	register(m, redeemCode)
	register(m, refreshGrant)
	register(m, endGrant)
	register(m, putCategory)
	register(m, deleteCategory)
	register(m, launchRuns)
	register(m, stopGroup)
	register(m, beginMove)
	register(m, openCheckout)
	register(m, tellContract)
	register(m, endMove)
	register(m, chooseFree)
	register(m, putInvoice)
	register(m, shareGroup)
	register(m, revokeShare)
	register(m, setPassword)
	register(m, disableAccount)
	register(m, removeAccount)
	register(m, putLetter)
	register(m, useLetter)
	register(m, handLetter)
	register(m, addPasskey)
	register(m, removePasskey)
	register(m, usePasskey)
	register(m, removeCustomer)
	register(m, eraseCustomer)
	register(m, moveSchedules)
	register(m, arrangeGroups)
	register(m, putStartType)
	register(m, putSettings)
	register(m, seedPlans)
	register(m, noteSpace)
	register(m, endCheckout)
	register(m, leaveOneCheckout)
	register(m, askExport)
	register(m, endExport)
	register(m, dropExport)
	register(m, askHarvest)
	register(m, endHarvest)
	register(m, forgetHarvests)
	register(m, beginImport)
	register(m, advanceImport)
	register(m, endImport)
	register(m, forgetImports)
	register(m, beginReExtract)
	register(m, advanceReExtract)
	register(m, endReExtract)
	register(m, putSite)
	register(m, deleteSite)
	register(m, putUploadLimits)
	register(m, protectGroup)
	register(m, beginResult)
	register(m, fixKey)
	register(m, beginCatalogue)
	register(m, endCatalogue)
	register(m, releaseRun)
	register(m, tellChanges)
	register(m, giveFeedback)
}

// fit returns a payload that all members of the cluster can apply, or a coded error if they cannot
// apply the command yet.
func (m *FSM) fit(payload command.Payload) (command.Payload, error) {
	version, founded := m.Store().ClusterVersion()
	_, raises := payload.(command.ActivateVersionPayload)
	switch since := command.Since(payload); {
	case founded && beyond(payload):
		return nil, fault.Invalid(fault.InvalidRequest, "version", "must be at most %d",
			command.Newest)
	case !founded || version >= command.Newest:
		return payload, nil
	case since > version && !raises:
		return nil, fault.New(fault.Unavailable,
			"the cluster is being upgraded: this is there once all its nodes run the new "+
				"version (%d)", since)
	case m.registry[payload.Declaration().Number].grew:
		return command.Trim(payload, version), nil
	}
	return payload, nil
}

// beyond reports whether a payload raises the cluster to a version that this binary cannot apply.
func beyond(payload command.Payload) bool {
	raise, ok := payload.(command.ActivateVersionPayload)
	return ok && raise.Version > command.Newest
}

// EncodePayload encodes a command's body so that every node can decode it. Its errors are coded.
func (m *FSM) EncodePayload(payload command.Payload) ([]byte, error) {
	payload, err := m.fit(payload)
	if err != nil {
		return nil, err
	}
	body, err := m.commands.Marshal(payload)
	if err != nil {
		return nil, fault.Wrap(fault.Internal,
			fmt.Errorf("fsm: encode command %d: %w", payload.Declaration().Number, err), "")
	}
	if m.registry[payload.Declaration().Number].free {
		if _, err := m.decodePayload(m.reader(), payload.Declaration().Number, body); err != nil {
			return nil, refuse(err)
		}
	}
	return body, nil
}

// reader returns the codec with which every member can read an entry appended now.
func (m *FSM) reader() *codec.Codec {
	if version, founded := m.Store().ClusterVersion(); founded && version < 2 {
		return m.first
	}
	return m.commands
}

// holdsAnything reports whether values of a type may be nested to any depth: it has an interface or
// contains itself. Other values always decode once encoded, since their text is repaired.
func holdsAnything(t reflect.Type, within []reflect.Type) bool {
	if slices.Contains(within, t) {
		return true
	}
	within = append(slices.Clip(within), t)
	switch t.Kind() {
	case reflect.Interface:
		return true
	case reflect.Pointer, reflect.Slice, reflect.Array:
		return holdsAnything(t.Elem(), within)
	case reflect.Map:
		return holdsAnything(t.Key(), within) || holdsAnything(t.Elem(), within)
	case reflect.Struct:
		for i := range t.NumField() {
			if field := t.Field(i); field.IsExported() && holdsAnything(field.Type, within) {
				return true
			}
		}
	}
	return false
}

// DecodePayload decodes the payload of a body.
func (m *FSM) DecodePayload(number command.Number, body []byte) (command.Payload, error) {
	return m.decodePayload(m.commands, number, body)
}

func (m *FSM) decodePayload(c *codec.Codec, number command.Number, body []byte) (command.Payload,
	error) {
	known, ok := m.registry[number]
	if !ok {
		return nil, fmt.Errorf("fsm: command %d is not known to this version", number)
	}
	payload, err := known.decode(c, body)
	if err != nil {
		return nil, fmt.Errorf("fsm: command %d cannot be decoded: %w", number, err)
	}
	return payload, nil
}

// Encode encodes a command for the log. It decodes payloads of any depth as Apply will, because a
// committed entry cannot be removed. Its errors are coded.
func (m *FSM) Encode(id ids.ID, stamp int64, payload command.Payload, call *command.Call) ([]byte,
	error) {
	return m.EncodeBy(nil, id, stamp, payload, call)
}

// EncodeBy is Encode with an actor, which it omits if a node might not know actors.
func (m *FSM) EncodeBy(actor *state.Actor, id ids.ID, stamp int64, payload command.Payload,
	call *command.Call) ([]byte, error) {
	version, founded := m.Store().ClusterVersion()
	if !founded || version < state.AuditSince {
		actor = nil
	}
	if founded && version < state.BriefSince && call != nil {
		bodiless := *call
		bodiless.Body, call = 0, &bodiless
	}
	payload, err := m.fit(payload)
	if err != nil {
		return nil, err
	}
	body, err := m.commands.Marshal(payload)
	var data []byte
	if err == nil {
		data, err = m.commands.Marshal(command.Envelope{ID: id,
			Number: payload.Declaration().Number, Stamp: stamp, Body: body, Call: call,
			Actor: actor})
	}
	if err != nil {
		return nil, fault.Wrap(fault.Internal,
			fmt.Errorf("fsm: encode command %d: %w", payload.Declaration().Number, err), "")
	}
	if m.registry[payload.Declaration().Number].free {
		if _, _, err := m.decode(m.reader(), data); err != nil {
			return nil, refuse(err)
		}
	}
	return data, nil
}

// decode decodes an entry of the log.
func (m *FSM) decode(c *codec.Codec, data []byte) (command.Envelope, command.Payload, error) {
	var env command.Envelope
	if err := c.Unmarshal(data, &env); err != nil {
		return env, nil, fmt.Errorf("fsm: an envelope cannot be decoded: %w", err)
	}
	payload, err := m.decodePayload(c, env.Number, env.Body)
	return env, payload, err
}

// refuse returns the fault of a command that cannot be decoded.
func refuse(err error) *fault.Error {
	return fault.Wrap(fault.InvalidRequest, err, "the command is nested too deeply, or holds "+
		"text that is not UTF-8")
}

// Result is the outcome of a command: a value of its result type, or a fault. Replayed marks the
// stored answer of an earlier call with the same idempotency key. Body is the hash of that call's
// streamed body.
type Result struct {
	ID       ids.ID // of the command
	Value    any
	Err      error
	Replayed bool
	Body     uint64
}

// Apply applies the command at a log index. A command that only the decoder's bounds refuse was
// committed by an older version without a check. Every node refuses it alike. Apply panics on any
// other command that cannot be decoded or is unknown, and on an unknown cluster version. A node
// older than the leader must not continue with a different state.
func (m *FSM) Apply(index uint64, data []byte) Result {
	env, payload, refused := m.decode(m.commands, data)
	if refused != nil {
		var err error
		if env, payload, err = m.decode(m.lenient, data); err != nil {
			panic(fmt.Sprintf("%v, at %d", err, index))
		}
	}
	if _, founded := m.Store().ClusterVersion(); founded && beyond(payload) {
		panic(fmt.Sprintf("fsm: the cluster goes on with a version beyond %d, at %d",
			command.Newest, index))
	}
	var result Result
	var ended []ids.ID
	err := m.Store().Update(index, env.Stamp, func(tx *state.Tx) error {
		if refused != nil {
			return refuse(refused)
		}
		result = m.applyOnce(tx, &env, m.registry[env.Number], payload)
		ended = tx.Ended()
		return nil
	})
	if err != nil {
		result = Result{Err: err}
	}
	result.ID = env.ID
	m.applied.Add(1)
	if o := m.observer.Load(); o != nil && result.Err == nil && !result.Replayed {
		(*o)(payload, result.Value, ended)
	}
	return result
}

// Snapshot takes the current state. It must not run beside Apply.
func (m *FSM) Snapshot() *state.Snapshot { return m.Store().Snapshot() }

// Restore replaces the state with a snapshot's.
func (m *FSM) Restore(r io.Reader) error {
	store, err := state.Restore(r)
	if err != nil {
		return err
	}
	m.store.Store(store)
	return nil
}

// notCoded returns a command's error as a fault. Commands should only return coded errors.
func notCoded(err error) *fault.Error {
	var coded *fault.Error
	if errors.As(err, &coded) {
		return coded
	}
	return fault.Wrap(fault.Internal, err, "")
}
