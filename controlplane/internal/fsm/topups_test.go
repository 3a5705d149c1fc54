package fsm

import (
	"bytes"
	"fmt"
	"math"
	"testing"

	"pgregory.net/rapid"

	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/fault"
)

// open records the session s of the customer a, for 10 EUR.
func (b *bench) open(session string) {
	b.t.Helper()
	b.must(command.OpenTopUpPayload{Session: session, Customer: "a", Amount: 10_000_000,
		Expires: b.now + 1_000, URL: "https://pay.test/" + session})
}

func (b *bench) pay(session string, amount int64) command.PaidTopUp {
	b.t.Helper()
	return b.must(command.PayTopUpPayload{Session: session, Payment: "p " + session, Customer: "a",
		Amount: amount, Entry: b.ids.New()}).(command.PaidTopUp)
}

func (b *bench) reverse(id, session string, amount, back int64) state.Reversal {
	b.t.Helper()
	return b.must(command.ReverseTopUpPayload{ID: id, Payment: "p " + session, Amount: amount,
		Back: back, Entry: b.ids.New()}).(state.Reversal)
}

// TestTopUpMoves tries every report of the provider in every state of a top-up.
func TestTopUpMoves(t *testing.T) {
	const s = "s"
	told := map[string]func(*bench){
		"paid":           func(b *bench) { b.pay(s, 10_000_000) },
		"paid elsewhere": func(b *bench) { b.pay(s, 0) },
		"expired":        func(b *bench) { b.must(command.EndTopUpPayload{Session: s}) },
		"failed": func(b *bench) {
			b.must(command.EndTopUpPayload{Session: s, Failed: true})
		},
		"opened": func(b *bench) { b.open(s) },
		"nothing for long": func(b *bench) {
			b.now += 1_000 + state.TopUpKeptMillis
			b.must(command.TickPayload{})
		},
	}
	before := map[string][]string{"": nil, "OPEN": {"opened"}, "APPLIED": {"opened", "paid"},
		"EXPIRED": {"opened", "expired"}, "FAILED": {"opened", "failed"},
		"UNMATCHED": {"opened", "paid elsewhere"}}
	for from, moves := range map[string]map[string]string{
		"": {"paid": "APPLIED", "paid elsewhere": "UNMATCHED", "expired": "", "failed": "",
			"opened": "OPEN", "nothing for long": ""},
		"OPEN": {"paid": "APPLIED", "paid elsewhere": "UNMATCHED", "expired": "EXPIRED",
			"failed": "FAILED", "opened": "OPEN", "nothing for long": "EXPIRED"},
		"EXPIRED": {"paid": "APPLIED", "paid elsewhere": "UNMATCHED", "expired": "EXPIRED",
			"failed": "EXPIRED", "opened": "EXPIRED", "nothing for long": ""},
		"FAILED": {"paid": "APPLIED", "paid elsewhere": "UNMATCHED", "expired": "FAILED",
			"failed": "FAILED", "opened": "FAILED", "nothing for long": ""},
		"APPLIED": {"paid": "APPLIED", "paid elsewhere": "APPLIED", "expired": "APPLIED",
			"failed": "APPLIED", "opened": "APPLIED", "nothing for long": "APPLIED"},
		"UNMATCHED": {"paid": "UNMATCHED", "paid elsewhere": "UNMATCHED", "expired": "UNMATCHED",
			"failed": "UNMATCHED", "opened": "UNMATCHED", "nothing for long": "UNMATCHED"},
	} {
		if len(moves) != len(told) {
			t.Errorf("%q: %d moves of %d", from, len(moves), len(told))
		}
		for event, to := range moves {
			t.Run(from+" "+event, func(t *testing.T) {
				b := newBench(t)
				for _, earlier := range before[from] {
					told[earlier](b)
				}
				for range 2 { // the second time changes nothing
					if event != "nothing for long" || b.now == 1 {
						told[event](b)
					}
					b.inState(s, to)
				}
			})
		}
	}
}

// inState checks that a top-up has a state, and that its money is in the matching account.
func (b *bench) inState(session, want string) {
	b.t.Helper()
	got, balance := "", int64(0)
	if known := b.view().TopUp(session); known != nil {
		got = known.Status
	}
	if want == state.TopUpApplied {
		balance = 10_000_000
	}
	if wallet := b.view().Wallet("a"); got != want || wallet.Balance() != balance ||
		wallet.ToppedUp != (balance > 0) || b.view().Books().Clearing != -balance {
		b.t.Errorf("state %q, %+v, %+v, want %q", got, wallet, b.view().Books(), want)
	}
}

func TestTopUpIsAnEntry(t *testing.T) {
	b := newBench(t)
	b.open("s")
	paid := b.pay("s", 12_340_000) // not the amount asked for: the payment counts
	if paid.TopUp.Asked != 10_000_000 || paid.TopUp.Paid != 12_340_000 || paid.Waiting != nil {
		t.Errorf("paid %+v", paid)
	}
	b.reverse("re_1", "s", 2_340_000, 0)
	var entries []*state.Entry
	b.view().Entries("a", func(e *state.Entry) bool { entries = append(entries, e); return true })
	if len(entries) != 3 || entries[1].Type != state.EntryTopUp ||
		entries[1].Status != state.EntryApplied || entries[1].Amount != 12_340_000 ||
		entries[1].BalanceAfter != 12_340_000 || entries[1].Note != "s" ||
		entries[0].Type != state.EntryAdjustment || entries[0].Amount != -2_340_000 ||
		entries[0].BalanceAfter != 10_000_000 || entries[0].Note != "re_1" {
		t.Errorf("entries %+v", entries)
	}
}

func TestTopUpRefusals(t *testing.T) {
	b := newBench(t)
	b.refused(command.OpenTopUpPayload{Session: "s", Customer: "nobody", Amount: 1},
		fault.Unauthorized)
	b.open("s")
	b.refused(command.OpenTopUpPayload{Session: "s", Customer: "b", Amount: 1}, fault.Internal)
	for n := range maxOpenTopUps - 1 {
		b.open(fmt.Sprint("more ", n))
	}
	b.refused(command.OpenTopUpPayload{Session: "t", Customer: "a", Amount: 1}, fault.LimitReached)
	b.must(command.OpenTopUpPayload{Session: "t", Customer: "b", Amount: 1})
	b.open("s") // a known session
	b.must(command.EndTopUpPayload{Session: "s"})
	b.open("u")
	b.refused(command.PayTopUpPayload{Session: "v", Customer: "a", Amount: 1 << 62},
		fault.AmountOverflow)
	if b.view().TopUp("v") != nil {
		t.Error("a refused payment left something")
	}
}

// TestAdjustmentsStayExact: clients can read every balance exactly, however many adjustments.
func TestAdjustmentsStayExact(t *testing.T) {
	const edge = 1<<53 - 1
	for _, sign := range []int64{1, -1} {
		b := newBench(t)
		adjust := func(amount int64) command.AdjustWalletPayload {
			return command.AdjustWalletPayload{Customer: "a", Entry: b.ids.New(), Amount: amount}
		}
		b.must(adjust(sign*edge - b.view().Wallet("a").Balance()))
		for _, amount := range []int64{sign, sign * 1e15, sign * math.MaxInt64} {
			b.refused(adjust(amount), fault.AmountOverflow)
		}
		if got := b.view().Wallet("a").Balance(); got != sign*edge {
			t.Errorf("the balance is %d", got)
		}
		b.must(adjust(-sign))
		b.must(adjust(sign))
	}
}

// TestUnmatchedMoneyIsHeld: money without a known owner is in the books, and so is what goes back.
func TestUnmatchedMoneyIsHeld(t *testing.T) {
	b := newBench(t)
	pay := command.PayTopUpPayload{Session: "s", Payment: "p s", Customer: "nobody", Amount: 500}
	for range 2 {
		if paid := b.must(pay).(command.PaidTopUp); paid.TopUp.Status != state.TopUpUnmatched {
			t.Errorf("paid %+v", paid)
		}
		if books := b.view().Books(); books.Unmatched != 500 || books.Clearing != -500 {
			t.Errorf("books %+v", books)
		}
	}
	b.reverse("re_1", "s", 500, 0)
	if books := b.view().Books(); books.Unmatched != 0 || books.Clearing != 0 {
		t.Errorf("after the refund: %+v", books)
	}
	b.pay("t", 0) // in another currency: the amount is unknown, and none is booked
	b.reverse("re_2", "t", 500, 0)
	if books := b.view().Books(); books.Unmatched != 0 || books.Clearing != 0 {
		t.Errorf("after another currency: %+v", books)
	}
}

// TestReversalsWait: a refund may be reported before its payment. Refunds of payments that are not
// ours wait until they expire.
func TestReversalsWait(t *testing.T) {
	b := newBench(t)
	if r := b.reverse("re_1", "s", 300, 0); r.Booked != 0 || r.Matched {
		t.Errorf("without a payment: %+v", r)
	}
	b.reverse("re_2", "s", 200, 200) // it failed before anything else was reported
	paid := b.pay("s", 1_000)
	if len(paid.Waiting) != 2 {
		t.Fatalf("waiting: %+v", paid.Waiting)
	}
	if again := b.pay("s", 1_000); len(again.Waiting) != 2 {
		t.Errorf("a repeat tells of %+v", again.Waiting)
	}
	for _, w := range paid.Waiting {
		b.reverse(w.ID, "s", w.Amount, w.Back)
	}
	if again := b.pay("s", 1_000); again.Waiting != nil {
		t.Errorf("still waiting: %+v", again.Waiting)
	}
	if balance := b.view().Wallet("a").Balance(); balance != 700 {
		t.Errorf("balance %d", balance)
	}
	b.index++
	if err := b.m.Store().Update(b.index, b.now, func(tx *state.Tx) error {
		for n := range maxWaitingReversals {
			tx.PutReversal(&state.Reversal{ID: fmt.Sprint("re ", n), Payment: "none of ours",
				Amount: 1, ToldAt: int64(n)})
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	b.now += maxWaitingReversals
	b.reverse("one more", "none of ours", 1, 0)
	if b.view().Reversal("re 0") != nil || b.view().Reversal("re 1") == nil {
		t.Error("not the oldest made room")
	}
	b.now += state.TopUpKeptMillis
	for range maxWaitingReversals/maxExpiredPerTick + 1 {
		b.must(command.TickPayload{})
	}
	b.view().WaitingReversals(func(r *state.Reversal) bool { t.Errorf("%+v", r); return false })
	if b.view().Reversal("re_1") == nil {
		t.Error("a booked reversal was forgotten")
	}
}

// paying applies a provider's random reports to a state machine, and knows the right result.
type paying struct {
	*money
	paid map[string]int64    // micros, by session
	away map[string]reversed // by id
	told []command.Payload   // for repeats
}

type reversed struct {
	session string
	amount  int64
	back    int64 // of it
}

func (d *paying) tell(t *rapid.T, payload command.Payload) {
	d.told = append(d.told, payload)
	d.must(t, payload)
}

func (d *paying) draw(t *rapid.T) string {
	return fmt.Sprint("s", rapid.IntRange(0, 4).Draw(t, "session"))
}

func (d *paying) pay(t *rapid.T) {
	session := d.draw(t)
	if _, known := d.paid[session]; !known {
		d.paid[session] = rapid.Int64Range(1, 3_000).Draw(t, "amount")
	}
	d.settle(t, command.PayTopUpPayload{Session: session, Payment: "p " + session,
		Customer: customer, Amount: d.paid[session], Entry: d.ids.New()})
}

// settle reports a payment as the API does: it then repeats the waiting reversals.
func (d *paying) settle(t *rapid.T, pay command.PayTopUpPayload) {
	d.told = append(d.told, pay)
	for _, w := range d.must(t, pay).(command.PaidTopUp).Waiting {
		if rapid.IntRange(0, 3).Draw(t, "killed") > 0 {
			d.tell(t, command.ReverseTopUpPayload{ID: w.ID, Payment: w.Payment, Amount: w.Amount,
				Back: w.Back, Entry: d.ids.New()})
		}
	}
}

func (d *paying) reverse(t *rapid.T) {
	id := fmt.Sprint("re", rapid.IntRange(0, 5).Draw(t, "reversal"))
	r, known := d.away[id]
	if !known {
		r = reversed{session: d.draw(t), amount: rapid.Int64Range(1, 3_000).Draw(t, "amount")}
	}
	back := min(rapid.Int64Range(-6_000, 4_000).Draw(t, "back"), r.amount)
	back = max(back, 0) // mostly nothing, sometimes a part or all
	r.back = max(r.back, back)
	d.away[id] = r
	d.tell(t, command.ReverseTopUpPayload{ID: id, Payment: "p " + r.session, Amount: r.amount,
		Back: back, Entry: d.ids.New()})
}

// repeat repeats an earlier report, with its old entry or another one.
func (d *paying) repeat(t *rapid.T) {
	if len(d.told) == 0 {
		return
	}
	again := rapid.SampledFrom(d.told).Draw(t, "again")
	other := rapid.Bool().Draw(t, "another entry")
	switch p := again.(type) {
	case command.ReverseTopUpPayload:
		if other {
			p.Entry = d.ids.New()
		}
		d.must(t, p)
	case command.PayTopUpPayload:
		if other {
			p.Entry = d.ids.New()
		}
		d.settle(t, p)
	default:
		d.must(t, again)
	}
}

// lead continues on another node: from a snapshot, with the last command proposed again.
func (d *paying) lead(t *rapid.T) {
	var out bytes.Buffer
	if err := d.m.Snapshot().Write(&out); err != nil {
		t.Fatal(err)
	}
	d.m = New()
	if err := d.m.Restore(&out); err != nil {
		t.Fatal(err)
	}
	if len(d.told) == 0 {
		return
	}
	data, err := d.m.Encode(d.ids.New(), d.now, d.told[len(d.told)-1], nil)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		d.index++
		if result := d.m.Apply(d.index, data); result.Err != nil {
			t.Fatal(result.Err)
		}
	}
}

// exact checks that the wallet has all payments minus all reversals, each once, when nothing waits
// any more.
func (d *paying) exact(t *rapid.T) {
	want := int64(0)
	for session, amount := range d.paid {
		want += amount
		for _, r := range d.m.Store().View().ReversalsOf("p " + session) {
			if !r.Matched {
				return // its payment's event has no answer yet, and comes again
			}
		}
	}
	for _, r := range d.away {
		if _, paid := d.paid[r.session]; paid {
			want -= r.amount - r.back
		}
	}
	view := d.m.Store().View()
	if got := view.Wallet(customer).Balance() + view.Books().Adjustments; got != want {
		t.Fatalf("the wallet has %d by top-ups, want %d: %v, %v", got, want, d.paid, d.away)
	}
}

// TestTopUpsAreExact makes the provider report anything, in any order and repetition, while leaders
// change. Postings sum to zero, balances are prefix sums, and each payment counts once.
func TestTopUpsAreExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := &paying{money: newMoney(t), paid: map[string]int64{}, away: map[string]reversed{}}
		t.Repeat(map[string]func(*rapid.T){
			"pay": d.pay, "reverse": d.reverse, "repeat": d.repeat, "repeat again": d.repeat,
			"lead": d.lead, "adjust": d.adjust,
			"tick": func(t *rapid.T) { d.must(t, command.TickPayload{}) },
			"open": func(t *rapid.T) {
				d.tell(t, command.OpenTopUpPayload{Session: d.draw(t), Customer: customer,
					Amount: 1, Expires: d.now + 1})
			},
			"end": func(t *rapid.T) {
				d.tell(t, command.EndTopUpPayload{Session: d.draw(t),
					Failed: rapid.Bool().Draw(t, "failed")})
			},
			"": func(t *rapid.T) { d.check(t); d.exact(t) },
		})
	})
}
