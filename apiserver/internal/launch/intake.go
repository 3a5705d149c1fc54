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
	// renewEvery is how often claims, which expire after two minutes, are renewed during an intake.
	renewEvery = 30 * time.Second
	// cleanUpTime bounds the clean-up after a refused call.
	cleanUpTime = 10 * time.Second
)

// intake is a run in the making. First it claims the idempotency key together with the id of the
// link list. Then it stores the list, and one command makes the run and completes the claim. If it
// ends earlier, it undoes what it began. After a crash, the leader removes lists that no claim and
// no job names. A call without a key claims a temporary one.
type intake struct {
	*Launcher
	from *Caller
	call *client.Call
	// the call has no key: the claim only protects the list, and is released once the run exists
	own    bool
	begun  time.Time
	list   ids.ID
	writer rowstore.ListWriter // nil until there is a list
	stored bool                // the list is finished; for a site: something is stored
	site   bool                // the links are those of a site, not of a run
	// website says that the addresses are websites of businesses, which have public domain names.
	website bool
	run     ids.ID // that was asked for
	made    bool   // the run exists
	maybe   bool   // the run may exist: nothing may be undone

	endRenewal context.CancelFunc
	renewing   sync.WaitGroup
}

// claimCall claims the call's idempotency key. If the call was made before, replay is its original
// answer.
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

// newIntake is an intake whose call is not yet claimed.
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

// keepClaim renews the claim until end is called.
func (t *intake) keepClaim(ctx context.Context) {
	renewing, end := context.WithCancel(ctx)
	t.endRenewal = end
	t.renewing.Go(func() { t.renew(renewing) })
}

func (t *intake) renew(ctx context.Context) {
	for clock.Pause(ctx, t.Clock, renewEvery) {
		// The next renewal makes up for a failed one; otherwise hold notices.
		_, _ = client.Do(ctx, t.Client, t.renewal(), nil)
	}
}

// renewal renews only this call's claim. It must not prolong the claim of a call that died.
func (t *intake) renewal() client.RenewClaims {
	return client.RenewClaims{Node: t.Node, Boot: t.Boot, Ticket: t.call.Ticket}
}

// end undoes what was begun, unless the run was made. It also works when ctx has ended.
func (t *intake) end(ctx context.Context) {
	t.endRenewal()
	t.renewing.Wait()
	if t.maybe || t.made && !t.own {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanUpTime)
	defer cancel()
	// What cannot be undone now is an orphan once its claim expires, and is removed then.
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

// taken is the result of an intake.
type taken struct {
	links   uint32 // in the list
	dropped uint32 // duplicates
	left    bool   // keep refused some address
}

// storeAddresses stores the addresses, all or none; each must be valid. keep says which canonical
// addresses to store; nil: all.
func (t *intake) storeAddresses(ctx context.Context, from addresses,
	keep func(canonical string) bool) (taken, error) {
	if err := t.createList(ctx); err != nil {
		return taken{}, err
	}
	n, err := t.addAddresses(ctx, from, keep)
	if err != nil {
		return n, err
	}
	return n, t.finishList(ctx)
}

func (t *intake) createList(ctx context.Context) (err error) {
	if t.writer, err = t.Store.CreateList(ctx, t.list); err != nil {
		return fmt.Errorf("take in a list: %w", err)
	}
	return nil
}

func (t *intake) finishList(ctx context.Context) error {
	if _, err := t.writer.Finish(ctx); err != nil {
		return fmt.Errorf("take in a list: %w", err)
	}
	t.stored = true
	return nil
}

// addAddresses adds addresses to the list, as storeAddresses does.
func (t *intake) addAddresses(ctx context.Context, from addresses,
	keep func(canonical string) bool) (taken, error) {
	var n taken
	for {
		given, err := from.next(ctx)
		if errors.Is(err, io.EOF) {
			return n, nil
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
		if added {
			n.links++
		} else {
			n.dropped++
		}
	}
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

// notPublic are top-level names that are not of public domains.
var notPublic = []string{"localhost", "local", "localdomain", "internal", "intranet", "lan", "home",
	"corp", "private", "arpa", "onion"}

// checkWebsite checks an address for website contacts: it needs http:// or https://, the default
// port and a public domain name. Other lists may leave out what browsers add.
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

// maxShown is how many bytes of a refused address an error shows.
const maxShown = 200

func refusedAddress(place, url string, cause error) error {
	code, reason := fault.InvalidURL, "The address cannot be read."
	if coded := (*fault.Error)(nil); errors.As(cause, &coded) {
		code, reason = coded.Code, coded.Detail
	}
	return fault.Invalid(code, place, "%q: %s", utf8text.CutText(url, maxShown), reason)
}

// commit makes the run. It belongs to the caller unless run names another customer.
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
	// A coded refusal is certain; after any other failure the run may exist. Under the same key,
	// the existing run may be another one.
	t.made, t.run = err == nil && launched.Job == run.Job, run.Job
	t.maybe = uncertain(err)
	if t.from.Job = launched.Job; t.maybe {
		t.from.Job = run.Job
	}
	return launched, err
}

// under is the call whose key the command is recorded under; nil: the call has no key.
func (t *intake) under() *client.Call {
	if t.own {
		return nil
	}
	return t.call
}

// uncertain says whether the command may have been applied despite its error.
func uncertain(err error) bool {
	return err != nil && (fault.CodeOf(err) == fault.Unavailable ||
		fault.CodeOf(err) == fault.Internal)
}

// hold makes sure that the claim exists and will last long enough. Without it the list may be
// removed.
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
