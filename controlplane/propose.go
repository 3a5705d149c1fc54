package controlplane

import (
	"context"
	"errors"
	"time"

	"github.com/hashicorp/raft"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/controlplane/internal/fsm"
	"shoal.dev/shoal/controlplane/internal/leadership"
	"shoal.dev/shoal/controlplane/internal/node"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/retry"
)

// maxCommandBytes bounds an encoded command: Raft sends whole entries between its heartbeats.
const maxCommandBytes = 512 << 10

var (
	errStopped  = fault.New(fault.Unavailable, "this node is stopping")
	errTooLarge = fault.New(fault.PayloadTooLarge, "the command has more than %d bytes",
		maxCommandBytes)
	// errPassedOver: a snapshot skipped the command, so its result was not seen here.
	errPassedOver = errors.New("controlplane: the command was applied, and its result was " +
		"not seen here")
)

// proposer appends commands to the log and confirms reads, through the leader, wherever it is.
type proposer struct {
	config      *Config
	node        *node.Node
	holder      *leadership.Holder
	here, there confirmer // confirm through this node's leadership, through the leader elsewhere
}

var _ leadership.Proposer = (*proposer)(nil)

// close ends the confirmations under way.
func (p *proposer) close() {
	p.here.close()
	p.there.close()
}

// propose applies a command under its id, through the leader wherever it is. It returns the result
// of this node's own state machine. An error means that the outcome is not known.
func (p *proposer) propose(ctx context.Context, id ids.ID, payload command.Payload,
	call *command.Call) (fsm.Result, error) {
	actor := client.ActorOf(ctx)
	return p.proposeBy(ctx, id, func() (uint64, error) {
		index, err := p.append(ctx, actor, id, payload, call)
		if errors.Is(err, raft.ErrNotLeader) {
			index, err = p.appendThere(ctx, actor, id, payload, call)
		}
		return index, err
	})
}

// Propose implements leadership.Proposer. It serves the leader's own steps, which are never
// forwarded to another leader.
func (p *proposer) Propose(ctx context.Context, payload command.Payload) (fsm.Result, error) {
	id := p.config.IDs.New()
	return p.proposeBy(ctx, id,
		func() (uint64, error) { return p.append(ctx, nil, id, payload, nil) })
}

// proposeBy calls appended until the command is applied, and waits until this node has applied it.
func (p *proposer) proposeBy(ctx context.Context, id ids.ID,
	appended func() (index uint64, err error)) (fsm.Result, error) {
	results, forget := p.node.Expect(id)
	defer forget()
	var result fsm.Result
	err := p.retry(ctx, func() error {
		index, err := appended()
		if err == nil {
			err = p.node.WaitFor(ctx, index)
		}
		select {
		case result = <-results: // the result counts, whatever the call returned
			return nil
		default:
		}
		if err == nil {
			err = errPassedOver
		}
		return err
	})
	return result, err
}

// append has Raft append a command here, and returns its index once it is applied. It is one
// attempt.
func (p *proposer) append(ctx context.Context, actor *client.Actor, id ids.ID,
	payload command.Payload, call *command.Call) (uint64, error) {
	if !p.node.Leads() {
		return 0, raft.ErrNotLeader
	}
	stamp, known := p.holder.Clocks().Stamp()
	// a leadership's first ticks need no time
	if _, ticks := payload.(command.TickPayload); !known && !ticks {
		return 0, raft.ErrNotLeader
	}
	data, err := p.node.FSM().EncodeBy(actor, id, stamp, payload, call)
	if err != nil {
		return 0, err
	}
	if len(data) > maxCommandBytes {
		return 0, errTooLarge
	}
	return p.node.Append(ctx, data)
}

// BeginTerm implements leadership.Proposer. It applies a command and not a barrier: other nodes
// wait for the committed index, and a barrier is never applied.
func (p *proposer) BeginTerm(ctx context.Context) (term, index uint64, err error) {
	id := p.config.IDs.New()
	err = p.retry(ctx, func() (err error) {
		if term, err = p.node.Term(ctx); err != nil {
			return err
		}
		if index, err = p.append(ctx, nil, id, command.TickPayload{}, nil); err != nil {
			return err
		}
		if now, err := p.node.Term(ctx); err != nil || now != term {
			return errors.Join(raft.ErrLeadershipLost, err)
		}
		return nil
	})
	return term, index, err
}

// appendThere has the leader append a command. It is one attempt.
func (p *proposer) appendThere(ctx context.Context, actor *client.Actor, id ids.ID,
	payload command.Payload, call *command.Call) (uint64, error) {
	body, err := p.node.FSM().EncodePayload(payload)
	if err != nil {
		return 0, err
	}
	if len(body) > maxCommandBytes {
		return 0, errTooLarge
	}
	var at position
	err = p.forward(ctx, methodPropose,
		proposal{ID: id, Number: payload.Declaration().Number, Body: body, Call: call,
			Actor: actor}, &at)
	return at.Index, err
}

// askAgain is the pause between two attempts.
var askAgain = retry.Backoff{First: 5 * time.Millisecond, Most: 100 * time.Millisecond}

// retry asks until it succeeds, ctx ends or the error is a coded one, which is final.
func (p *proposer) retry(ctx context.Context, ask func() error) error {
	for failures := 1; ; failures++ {
		led := p.node.LeaderContext()
		err := ask()
		var final *fault.Error
		switch {
		case err == nil || errors.As(err, &final):
			return err
		case errors.Is(err, node.ErrStopping) || p.node.Life().Err() != nil:
			return errStopped
		}
		if ctx.Err() == nil {
			select {
			case <-ctx.Done():
			case <-led.Done():
				failures = 1
			case <-p.config.Clock.After(askAgain.After(failures)):
			}
		}
		if ctx.Err() != nil {
			text := "the outcome is not known yet; ask again"
			if errors.Is(err, node.ErrLeaderless) {
				text = "the control plane has no leader; " + text
			}
			return fault.Wrap(fault.Unavailable, errors.Join(ctx.Err(), err), "%s", text)
		}
	}
}

// Settle implements leadership.Proposer.
func (p *proposer) Settle(ctx context.Context, receipts []model.Receipt) error {
	return settleReceipts(receipts, func(payload command.Payload) (fsm.Result,
		error) {
		return p.Propose(ctx, payload)
	})
}

const (
	// forwardPatience is how long one attempt to forward a call to the leader may take. Attempts
	// end sooner when this node hears of another leader or loses its own.
	forwardPatience = 5 * time.Second
	// olderLeader is said during an upgrade of the cluster: the next leader may know the command.
	olderLeader = "the cluster is being upgraded: its leader does not know this yet"
)

// forward sends a call to the leader on another node. A coded error comes from the leader. Any
// other error is plain and means that the outcome is not known.
func (p *proposer) forward(ctx context.Context, method string, request, answer any) error {
	return p.forwardFor(ctx, forwardPatience, method, request, answer)
}

func (p *proposer) forwardFor(ctx context.Context, patience time.Duration, method string, request,
	answer any) error {
	err := p.node.CallLeader(ctx, patience, method, request, answer)
	// an older leader knows neither the command nor the method
	if fault.CodeOf(err) == fault.NotSupported {
		err = fault.Wrap(fault.Unavailable, err, olderLeader)
	}
	return err
}
