package events

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"shoal.dev/shoal/apiserver/api/jobs"
	"shoal.dev/shoal/apiserver/api/notifications"
	"shoal.dev/shoal/apiserver/api/wallet"
	"shoal.dev/shoal/apiserver/internal/auth"
	"shoal.dev/shoal/apiserver/internal/limits"
	"shoal.dev/shoal/apiserver/internal/operation"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/model"
)

const (
	// tellEvery is the least time between two checks for changes. So events are sent at most 4
	// times a second, and faster changes are combined.
	tellEvery = 250 * time.Millisecond
	// aheadPatience is how long to wait until this server catches up with another server's stream.
	aheadPatience = 5 * time.Second
)

type streamRequest struct {
	Header uint64 `header:"Last-Event-ID" default:"0" doc:"Id of the last event received: changes since then are sent"`
	Ticket string `query:"ticket" max:"128" doc:"Used instead of a credential: POST /api/events/ticket makes one"`
	Query  uint64 `query:"lastEventId" default:"0" doc:"The same, for browsers, which cannot send the header themselves"`
}

// stream is GET /api/events/stream.
func (r Resource) stream() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID: "svc_stream_events", Routes: operation.Routes("GET /api/events/stream"), Group: group,
		Summary: "Streams changes to the customer's runs, wallet, top-ups and notifications",
		Description: "Each event has the newest state of one thing: a run, the wallet, a " +
			"top-up or a notification. Each thing has at most 4 events a second; changes in " +
			"between are combined. The first frame has only an id, and all later changes are " +
			"sent. Of events for changes made together, only the last has the id. After " +
			"resync, reload what is shown: too much has changed since Last-Event-ID, or it is " +
			"unknown how much.",
		Access: auth.Read, Rate: limits.Read, Tickets: true, NamedEvents: told(),
	}, func(_ context.Context, from *operation.Caller, in *streamRequest) (operation.Events,
		error) {
		customer, behind := from.Customer, in.Header
		if behind == 0 { // a browser that comes back sends it beside its first address
			behind = in.Query
		}
		return func(ctx context.Context, to *operation.EventWriter) error {
			t := &teller{Resource: r, customer: customer,
				following: r.Client.Follow(customer, behind)}
			return t.tell(ctx, to)
		}, nil
	})
}

// teller sends one stream the changes of a customer.
type teller struct {
	Resource
	following *client.Following
	customer  string
	to        *operation.EventWriter
	wallet    wallet.Wallet // as last sent
	noted     bool          // the stream has an id
}

// frame is an event to be sent.
type frame struct {
	event string
	data  any
}

// tell runs until the stream ends.
func (t *teller) tell(ctx context.Context, to *operation.EventWriter) error {
	t.to = to
	defer func() { t.following.End() }()
	if err := to.Wait(ctx, t.following.Reached(), t.Clock.After(aheadPatience)); err != nil {
		return err
	}
	for {
		if err := t.tellOnce(ctx); err != nil {
			return err
		}
		if err := to.Wait(ctx, nil, t.Clock.After(tellEvery)); err != nil {
			return err
		}
		if err := to.Wait(ctx, t.following.Woken(), nil); err != nil {
			return err
		}
	}
}

// tellOnce sends what has changed since the last call.
func (t *teller) tellOnce(ctx context.Context) error {
	taken := t.following.TakeChanges()
	if taken.Over { // the state was replaced: follow the new one
		t.following.End()
		t.following = t.Client.Follow(t.customer, 0)
		taken = t.following.TakeChanges()
		taken.Missed = true
	}
	var frames []frame
	if taken.Missed {
		frames, t.wallet = []frame{{resync, ResyncEvent{}}}, wallet.Wallet{}
	}
	for _, touch := range taken.Touches {
		more, err := t.newest(ctx, taken.View, touch)
		if err != nil {
			return err
		}
		frames = append(frames, more...)
	}
	id := strconv.FormatUint(taken.Index, 10)
	for i, f := range frames {
		own := ""
		if i == len(frames)-1 {
			own = id // everything was sent
		}
		if err := t.to.Send(f.event, own, f.data); err != nil {
			return err
		}
	}
	if len(frames) == 0 && !t.noted {
		if err := t.to.Note(id); err != nil {
			return err
		}
	}
	t.noted = true
	return nil
}

// resultOf returns the event of a completed merge or match; none if the run is neither.
func resultOf(view *client.View, job *client.Job) []frame {
	sibling := view.Group(job.Group)
	switch {
	case job.State != model.Completed || sibling == nil || sibling.Of.IsZero():
		return nil
	case sibling.Made == client.Enriched:
		return []frame{{mergeEnded, MergeEvent{GroupID: sibling.Of, EnrichedGroupID: sibling.ID,
			JobID: job.ID, MergedItems: job.Items}}}
	}
	return []frame{{matchEnded, MatchEvent{GroupID: sibling.Of, MatchedGroupID: sibling.ID,
		JobID: job.ID, MatchedItems: job.Items}}}
}

// newest returns the events with a thing's current state, none if there is nothing to tell.
func (t *teller) newest(ctx context.Context, view *client.View, touch client.Touch) ([]frame,
	error) {
	switch touch.What {
	case client.TouchedJob:
		job, err := t.History.Run(ctx, view, touch.ID)
		if err != nil {
			return nil, fmt.Errorf("run %s: %w", touch.ID, err)
		}
		if job == nil || job.Trial() {
			return nil, nil
		}
		status := frame{jobStatus, JobStatusEvent{JobID: job.ID, ScraperID: job.Scraper,
			GroupID: job.Group, JobProgress: jobs.NewProgress(job, t.customer)}}
		return append([]frame{status}, resultOf(view, job)...), nil
	case client.TouchedWallet:
		now := wallet.New(view, t.customer)
		if now == t.wallet { // only reservations changed, which customers do not see
			return nil, nil
		}
		t.wallet = now
		return []frame{{walletUpdated, now}}, nil
	case client.TouchedTopUp:
		if known := view.TopUp(touch.Session); known != nil {
			return []frame{{topUpStatus, TopUpEvent{SessionID: known.Session,
				TopUpStatus: wallet.TopUpStatus{Status: known.Status}}}}, nil
		}
	case client.TouchedNotice:
		if known := view.Notice(t.customer, touch.ID); known != nil {
			return []frame{{notification, NotificationEvent{
				Notification: notifications.NewNotification(known),
				Unread:       view.Inbox(t.customer).Unread}}}, nil
		}
	}
	return nil, nil
}
