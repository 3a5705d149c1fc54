package launch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/address"
	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/rowstore"
	"shoal.dev/shoal/pkg/telemetry"
	"shoal.dev/shoal/pkg/utf8text"
)

const (
	// renewEvery keeps claims, which expire after two minutes, while lists are taken in.
	renewEvery = 30 * time.Second
	// cleanUpTime is for taking back what a refused call began.
	cleanUpTime = 10 * time.Second
)

// intake is a run in the making. First its idempotency key is claimed together with the id of its
// link list. Then the list is taken in, and one command makes the run and completes the claim.
// Whatever ends it before that is taken back; what a killed process leaves (a list that no claim
// and no job names) the leader removes. A call without a key claims one of its own for the while.
type intake struct {
	*Launcher
	from *Caller
	call *client.Call
	// the call has no key of its own: the claim is for the list alone, and goes when the run is
	// there
	own    bool
	begun  time.Time
	list   ids.ID
	writer rowstore.ListWriter // nil until there is a list
	stored bool                // the list is finished; of a site: something is stored
	site   bool                // the links are a site's, not a run's
	// website says that the addresses are websites of businesses, which have public names of their
	// own.
	website bool
	run     ids.ID // that was asked for
	made    bool   // the run is there
	maybe   bool   // the run may be there: nothing is to be taken back

	endRenewal context.CancelFunc
	renewing   sync.WaitGroup
}

// claimCall claims the call by its idempotency key. A call that was made before answers what it
// answered then: replay is not nil.
func (l *Launcher) claimCall(ctx context.Context, from *Caller) (t *intake, replay *client.Launched,
	err error) {
	t = l.newIntake(from)
	replay, err = client.Begin[client.LaunchRun](ctx, l.Client, t.claim(), t.call)
	if err != nil {
		return nil, nil, err
	}
	if replay != nil {
		from.Job = replay.Job
		return nil, replay, nil
	}
	t.keepClaim(ctx)
	return t, nil, nil
}

// newIntake is an intake whose call is not claimed yet.
func (l *Launcher) newIntake(from *Caller) *intake {
	t := &intake{Launcher: l, from: from, call: from.Call, own: from.Call == nil,
		begun: l.Clock.Now(), list: l.IDs.New()}
	if t.own {
		t.call = &client.Call{Customer: from.Customer, Operation: from.Operation,
			Key: "list " + t.list.String()}
	}
	return t
}

func (t *intake) claim() client.ClaimCall {
	return client.ClaimCall{List: t.list, Node: t.Node, Boot: t.Boot}
}

// keepClaim renews the claim until end.
func (t *intake) keepClaim(ctx context.Context) {
	renewing, end := context.WithCancel(ctx)
	t.endRenewal = end
	t.renewing.Go(func() { t.renew(renewing) })
}

func (t *intake) renew(ctx context.Context) {
	for clock.Pause(ctx, t.Clock, renewEvery) {
		// A failed renewal is made up for by the next, or seen by hold.
		_, _ = client.Do(ctx, t.Client, t.renewal(), nil)
	}
}

// renewal renews this call's claim alone: one that ended without a word must not live by it.
func (t *intake) renewal() client.RenewClaims {
	return client.RenewClaims{Node: t.Node, Boot: t.Boot, Ticket: t.call.Ticket}
}

// end takes back what was begun, unless the run was made. It works also when ctx has ended.
func (t *intake) end(ctx context.Context) {
	t.endRenewal()
	t.renewing.Wait()
	if t.maybe || t.made && !t.own {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanUpTime)
	defer cancel()
	// What cannot be taken back now is an orphan once its claim has expired, and goes then.
	switch {
	case t.made:
	case t.site && t.stored:
		_ = t.Store.DropSite(ctx, t.list)
	case t.writer == nil:
	case t.stored:
		_ = t.Store.DropList(ctx, t.list)
	default:
		_ = t.writer.Abort(ctx)
	}
	_, _ = client.Do(ctx, t.Client, client.ReleaseClaim{}, t.call)
}

// taken counts an intake.
type taken struct {
	links   uint32 // in the list
	dropped uint32 // duplicates
	left    bool   // some address was not to be kept
}

// storeAddresses stores the addresses, all or none: each must be valid. keep, when not nil, says
// which canonical addresses to take.
func (t *intake) storeAddresses(ctx context.Context, from addresses,
	keep func(canonical string) bool) (taken, error) {
	var n taken
	var err error
	if t.writer, err = t.Store.CreateList(ctx, t.list); err != nil {
		return n, fmt.Errorf("take in a list: %w", err)
	}
	for {
		given, err := from.next(ctx)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return n, err
		}
		url, canonical := given.url, given.canonical
		if canonical == "" {
			if canonical, err = t.canonical(url); err != nil {
				return n, refusedAddress(from.place(), url, err)
			}
		}
		if keep != nil && !keep(canonical) {
			n.left = true
			continue
		}
		added, err := t.writer.Add(ctx, url, canonical)
		if err != nil {
			return n, fmt.Errorf("take in a list: %w", err)
		}
		if !added {
			n.dropped++
		}
	}
	if n.links, err = t.writer.Finish(ctx); err != nil {
		return n, fmt.Errorf("take in a list: %w", err)
	}
	t.stored = true
	return n, nil
}

func (t *intake) canonical(url string) (string, error) {
	if err := t.Guard.CheckURL(url); err != nil {
		return "", err
	}
	canonical, err := address.Canonical(url)
	if err == nil && t.website {
		err = checkWebsite(url, canonical)
	}
	return canonical, err
}

// notPublic are top-level names that no public domain has.
var notPublic = []string{"localhost", "local", "localdomain", "internal", "intranet", "lan", "home",
	"corp", "private", "arpa", "onion"}

// checkWebsite is the rule for the addresses of website contacts: http:// or https://, the default
// port and a public domain name. Others may leave out what browsers add.
func checkWebsite(url, canonical string) error {
	authority, host := address.AuthorityOf(canonical), address.HostOf(canonical)
	scheme, _, _ := strings.Cut(canonical, "://")
	labels := strings.Split(strings.TrimSuffix(host, "."), ".")
	top := labels[len(labels)-1]
	switch {
	case len(url) < len(scheme)+3 || !strings.EqualFold(url[:len(scheme)+3], scheme+"://"):
		return fault.New(fault.InvalidURL, "The address does not start with http:// or https://.")
	case strings.HasPrefix(authority, "["):
	case authority != host:
		return fault.New(fault.InvalidURL, "The address has a port of its own.")
	case len(labels) > 1 && top != "" && top[0] > '9' && !slices.Contains(labels, "") &&
		!slices.Contains(notPublic, top):
		return nil
	}
	return fault.New(fault.InvalidURL, "The address names no public domain.")
}

// maxShown is how much of a refused address an error shows, in bytes.
const maxShown = 200

func refusedAddress(place, url string, cause error) error {
	code, reason := fault.InvalidURL, "The address cannot be read."
	if coded := (*fault.Error)(nil); errors.As(cause, &coded) {
		code, reason = coded.Code, coded.Detail
	}
	return fault.Invalid(code, place, "%q: %s", utf8text.CutText(url, maxShown), reason)
}

// commit makes the run, the caller's unless it names another customer.
func (t *intake) commit(ctx context.Context, run client.LaunchRun) (client.Launched, error) {
	if err := t.hold(ctx); err != nil {
		return client.Launched{}, err
	}
	run.Job, run.Entry, run.List = t.IDs.New(), t.IDs.New(), t.list
	if run.Customer == "" {
		run.Customer = t.call.Customer
	}
	run.Trace = telemetry.FromContext(ctx)
	launched, err := client.Do(ctx, t.Client, run, t.under())
	// A coded refusal is certain; any other failure may hide a run that was made. The key's first
	// run may be another.
	t.made, t.run = err == nil && launched.Job == run.Job, run.Job
	t.maybe = uncertain(err)
	if t.from.Job = launched.Job; t.maybe {
		t.from.Job = run.Job
	}
	return launched, err
}

// under is the call that the effect stands under; nil: it has no key, and leaves no record of one.
func (t *intake) under() *client.Call {
	if t.own {
		return nil
	}
	return t.call
}

// uncertain says of a command's error whether the command may have been applied all the same.
func uncertain(err error) bool {
	return err != nil && (fault.CodeOf(err) == fault.Unavailable ||
		fault.CodeOf(err) == fault.Internal)
}

// hold makes sure that the claim is still there, and will be for long enough: without it the list
// may be removed.
func (t *intake) hold(ctx context.Context) error {
	if t.Clock.Now().Sub(t.begun) < renewEvery {
		return nil
	}
	if _, err := client.Do(ctx, t.Client, t.renewal(), nil); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, client.Patience)
	defer cancel()
	view, err := t.Client.Fresh(ctx)
	if err != nil {
		return err
	}
	if view.ClaimOfList(t.list) == nil {
		return fault.New(fault.Unavailable, "the list could not be held while it was taken in; "+
			"send it again")
	}
	return nil
}
