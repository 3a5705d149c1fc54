package fsm

import (
	"bytes"
	"testing"

	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
)

// hook makes a webhook of the customer a.
func (b *bench) hook(events ...model.Event) ids.ID {
	b.t.Helper()
	id := b.ids.New()
	b.must(command.PutWebhookPayload{ID: id, Customer: "a", URL: "https://a.test/",
		Events: events, Secret: id[:]})
	return id
}

// calls returns the deliveries of a webhook, newest first. Its counts must match them.
func (b *bench) calls(hook ids.ID) (all []*state.Delivery) {
	b.t.Helper()
	next := int64(0)
	b.view().Deliveries(hook, func(d *state.Delivery) bool {
		all = append(all, d)
		if (d.Due != 0) != (d.State == state.DeliveryPending) {
			b.t.Errorf("%s, due at %d", d.State, d.Due)
		}
		if d.Due != 0 && (next == 0 || d.Due < next) {
			next = d.Due
		}
		return true
	})
	if w := b.view().Webhook(hook); w != nil && (int(w.Deliveries) != len(all) || w.Next != next) {
		b.t.Errorf("%d deliveries, next at %d: the webhook says %+v", len(all), next, w)
	}
	return all
}

// tried returns a record of an attempt at the newest delivery.
func (b *bench) tried(hook ids.ID, status uint16, why string) command.RecordDeliveriesPayload {
	b.t.Helper()
	newest := b.calls(hook)[0]
	record := command.RecordDeliveriesPayload{Tried: []command.TriedDelivery{{Webhook: hook,
		Message: newest.Notice.ID, Tries: newest.Tries, Status: status, Error: why}}}
	b.must(record)
	return record
}

// TestWebhooksAreCalled: those of the customer that want the event, whatever its preferences.
func TestWebhooksAreCalled(t *testing.T) {
	b := newBench(t)
	b.now = 1_000
	keys, runs := b.hook(model.APIKeyCreated), b.hook(model.RunFailed)
	off, foreign := b.hook(model.APIKeyCreated), b.ids.New()
	b.must(command.PutWebhookPayload{ID: off, Customer: "a", Events: []model.Event{
		model.APIKeyCreated}, Off: true})
	b.must(command.PutWebhookPayload{ID: foreign, Customer: "b", Events: []model.Event{
		model.APIKeyCreated}, Secret: []byte{1}})
	b.must(command.PreferNoticesPayload{Customer: "a", Set: []state.Preference{
		{Event: model.APIKeyCreated, How: model.NotAtAll}}})
	id := b.mint("key")
	for hook, want := range map[ids.ID]int{keys: 1, runs: 0, off: 0, foreign: 0} {
		if got := b.calls(hook); len(got) != want {
			t.Errorf("%d deliveries, want %d", len(got), want)
		}
	}
	if d := b.calls(keys)[0]; d.State != state.DeliveryPending || d.Due != 1_000 ||
		d.Notice.Subject != id || d.Notice.Name != "key" ||
		d.Notice.ID != state.NoticeID(model.APIKeyCreated, "a", id, 0) {
		t.Errorf("%+v", d)
	}
	if len(told(b.view(), "a")) != 0 {
		t.Error("a notice that nobody wants")
	}
}

// TestDeliveriesAreTriedEightTimes over 24 hours. Repeated records change nothing.
func TestDeliveriesAreTriedEightTimes(t *testing.T) {
	b := newBench(t)
	b.now = 1_000
	hook := b.hook(model.APIKeyCreated)
	b.mint("key")
	var before command.RecordDeliveriesPayload
	for try := range 8 {
		d := b.calls(hook)[0]
		if d.State != state.DeliveryPending || int(d.Tries) != try || d.Due < b.now {
			t.Fatalf("before try %d: %+v", try, d)
		}
		b.now = d.Due
		now := b.tried(hook, 500, "status 500")
		stands := *b.calls(hook)[0]
		b.must(now)
		if try > 0 {
			b.must(before)
		}
		if after := *b.calls(hook)[0]; after != stands {
			t.Fatalf("after a repeat %+v, before it %+v", after, stands)
		}
		before = now
	}
	const hour = 60 * 60 * 1000
	if took := b.now - 1_000; took > 24*hour || took < 23*hour {
		t.Errorf("8 tries within %d ms", took)
	}
	d := b.calls(hook)[0]
	if d.State != state.DeliveryFailed || d.Tries != 8 || d.Status != 500 || d.TriedAt != b.now {
		t.Errorf("in the end: %+v", d)
	}
	// Sent again, it has 8 attempts again, and its old id.
	again := b.must(command.SendDeliveryPayload{Webhook: hook, Customer: "a",
		Message: d.Notice.ID}).(state.Delivery)
	if again.State != state.DeliveryPending || again.Due != b.now ||
		again.Notice.ID != d.Notice.ID {
		t.Errorf("sent anew: %+v", again)
	}
	for range 7 {
		b.tried(hook, 0, "timeout")
	}
	if d := b.calls(hook)[0]; d.State != state.DeliveryPending {
		t.Errorf("after 7 more: %+v", d)
	}
	b.must(command.SendDeliveryPayload{Webhook: hook, Customer: "a", Message: d.Notice.ID})
	if d := b.calls(hook)[0]; d.Due != b.now || d.Tries != 15 {
		t.Errorf("a pending one sent at once: %+v", d)
	}
	b.tried(hook, 204, "")
	if d := b.calls(hook)[0]; d.State != state.DeliveryDelivered || d.Tries != 16 ||
		d.Error != "" || b.view().Webhook(hook).FailingSince != 0 {
		t.Errorf("delivered: %+v", d)
	}
}

func TestWebhooksAreSwitchedOff(t *testing.T) {
	b := newBench(t)
	b.now = 1_000
	hook, watcher := b.hook(model.APIKeyCreated), b.hook(model.WebhookDisabled)
	disabled := func(want string, notices int) {
		t.Helper()
		if w := b.view().Webhook(hook); w.Off != want || len(b.calls(watcher)) != notices {
			t.Fatalf("off: %q, %d notices", w.Off, len(b.calls(watcher)))
		}
		for _, d := range b.calls(hook) {
			if want != "" && d.State == state.DeliveryPending {
				t.Errorf("%s, and pending: %+v", want, d)
			}
		}
	}
	fail := func() { // all its attempts
		b.mint("key")
		for range 8 {
			b.tried(hook, 503, "status 503")
		}
	}
	fail()
	b.now += webhookFailingMillis - 1
	fail()
	disabled("", 0)
	b.mint("waiting")
	b.now++
	fail()
	disabled(state.WebhookFailing, 1)
	b.mint("not told")
	if got := b.calls(hook); len(got) != 4 {
		t.Fatalf("%d deliveries", len(got))
	}
	on := command.PutWebhookPayload{ID: hook, Customer: "a", Events: []model.Event{
		model.APIKeyCreated}}
	b.must(on)
	fail()
	disabled("", 1)
	b.mint("to who is gone")
	b.tried(hook, 410, "status 410")
	disabled(state.WebhookGone, 2)
	// A test is still delivered, and its failure causes no notice.
	b.must(command.SendDeliveryPayload{Webhook: hook, Customer: "a", Message: b.ids.New(),
		Test: true})
	if d := b.calls(hook)[0]; d.State != state.DeliveryPending ||
		d.Notice.Event != model.WebhookTest {
		t.Fatalf("a test: %+v", d)
	}
	b.tried(hook, 410, "status 410")
	if len(b.calls(watcher)) != 2 {
		t.Error("switched off twice")
	}
	on.Off = true
	b.must(on)
	disabled(state.WebhookStopped, 2)
	if n := b.calls(watcher)[0].Notice; n.Subject != hook || n.Message != "status 410" {
		t.Errorf("told: %+v", n)
	}
}

// TestDeliveriesAreBounded: the oldest ended delivery is removed to make room. While all are
// pending, new ones are only counted.
func TestDeliveriesAreBounded(t *testing.T) {
	b := newBench(t)
	b.now = 1_000
	hook := b.hook(model.APIKeyCreated)
	test := func() Result {
		return b.do(command.SendDeliveryPayload{Webhook: hook, Customer: "a",
			Message: b.ids.New(), Test: true})
	}
	for range maxDeliveries {
		if r := test(); r.Err != nil {
			t.Fatal(r.Err)
		}
	}
	if r := test(); fault.CodeOf(r.Err) != fault.LimitReached {
		t.Errorf("one more test: %v", r.Err)
	}
	b.mint("dropped")
	if w := b.view().Webhook(hook); w.Dropped != 1 || len(b.calls(hook)) != maxDeliveries {
		t.Fatalf("%+v", w)
	}
	ended := b.tried(hook, 200, "").Tried[0].Message
	b.mint("kept")
	all := b.calls(hook)
	if len(all) != maxDeliveries || all[0].Notice.Name != "kept" ||
		b.view().Delivery(hook, ended) != nil {
		t.Errorf("%d deliveries, the newest %+v", len(all), all[0])
	}
	b.now += deliveryKeptMillis - 1
	b.must(command.TickPayload{})
	if got := len(b.calls(hook)); got != maxDeliveries {
		t.Errorf("a millisecond too early: %d stay", got)
	}
	b.now++
	b.must(command.TickPayload{})
	if got := len(b.calls(hook)); got != 0 {
		t.Errorf("%d stay", got)
	}
}

func TestWebhooksAreTheirCustomers(t *testing.T) {
	b := newBench(t)
	b.now = 1_000
	hook := b.hook(model.APIKeyCreated)
	message := b.ids.New()
	b.must(command.SendDeliveryPayload{Webhook: hook, Customer: "a", Message: message, Test: true})
	refused := func(payload command.Payload, code fault.Code) {
		t.Helper()
		if r := b.do(payload); fault.CodeOf(r.Err) != code {
			t.Errorf("%T: %v, want %s", payload, r.Err, code)
		}
	}
	for customer, id := range map[string]ids.ID{"b": hook, "a": b.ids.New()} {
		refused(command.PutWebhookPayload{ID: id, Customer: customer}, fault.NotFound)
		refused(command.RotateWebhookPayload{ID: id, Customer: customer}, fault.NotFound)
		refused(command.DeleteWebhookPayload{ID: id, Customer: customer}, fault.NotFound)
		refused(command.SendDeliveryPayload{Webhook: id, Customer: customer, Message: message},
			fault.NotFound)
	}
	refused(command.SendDeliveryPayload{Webhook: hook, Customer: "a", Message: b.ids.New()},
		fault.NotFound)
	refused(command.PutWebhookPayload{ID: b.ids.New(), Customer: "nobody", Secret: []byte{1}},
		fault.Unauthorized)
	rotate := command.RotateWebhookPayload{ID: hook, Customer: "a", Secret: []byte{2}, Overlap: 10}
	for range 2 {
		w := b.must(rotate).(state.Webhook)
		if !bytes.Equal(w.Former, hook[:]) || w.FormerUntil != 1_010 ||
			!bytes.Equal(w.Secret, []byte{2}) {
			t.Errorf("rotated: %+v", w)
		}
		b.now = 1_005
	}
	for range maxWebhooks - 1 {
		b.hook()
	}
	refused(command.PutWebhookPayload{ID: b.ids.New(), Customer: "a", Secret: []byte{1}},
		fault.LimitReached)
	b.must(command.DeleteWebhookPayload{ID: hook, Customer: "a"})
	b.must(command.RecordDeliveriesPayload{Tried: []command.TriedDelivery{{Webhook: hook,
		Message: message}}})
	if b.view().Webhook(hook) != nil || len(b.calls(hook)) != 0 {
		t.Error("it is there after its deletion")
	}
	refused(command.DeleteWebhookPayload{ID: hook, Customer: "a"}, fault.NotFound)
	b.hook()
}

// TestDeletedWebhooksLeaveAMark, so that no restore brings them back.
func TestDeletedWebhooksLeaveAMark(t *testing.T) {
	b := newBench(t)
	b.now = 1_000
	deleted, removed := b.hook(model.APIKeyCreated), b.hook(model.APIKeyCreated)
	b.mint("key")
	b.must(command.DeleteWebhookPayload{Customer: "a", ID: deleted})
	d := command.Deletion{Customer: "a", Operation: command.OpRemoveCustomer}
	b.must(command.PreviewDeletePayload{Deletion: d, Token: "t"})
	b.must(command.RemoveCustomerPayload{Deletion: d, Token: "t", By: "root"})
	b.must(command.EraseCustomerPayload{Customer: "a"})
	for _, hook := range []ids.ID{deleted, removed} {
		if b.view().Webhook(hook) != nil || b.view().Revoked(hook) == nil {
			t.Errorf("of %s: %+v, %+v", hook, b.view().Webhook(hook), b.view().Revoked(hook))
		}
	}
}
