package fsm

import (
	"math"

	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/fault"
)

// books is the ledger within one command. Every movement goes from one account to another, so
// postings sum to zero. Nothing is written before save.
type books struct {
	tx      *state.Tx
	system  state.Books
	wallets map[string]*state.Wallet
}

func openBooks(tx *state.Tx) *books {
	return &books{tx: tx, system: *tx.Books(), wallets: map[string]*state.Wallet{}}
}

// wallet returns the command's copy of a customer's wallet, nil when the customer has none.
func (b *books) wallet(customer string) *state.Wallet {
	if w, ok := b.wallets[customer]; ok {
		return w
	}
	w := b.tx.Wallet(customer)
	if w == nil {
		return nil
	}
	copied := *w
	b.wallets[customer] = &copied
	return &copied
}

// move is the only way to move money or free requests between accounts.
func move(from, to *int64, amount int64) {
	*from -= amount
	*to += amount
}

// reserve holds money and free requests for a unit that is dispatched.
func (b *books) reserve(w *state.Wallet, o *state.Out) {
	move(&w.Available, &w.Reserved, o.Money())
	move(&w.Free, &w.FreeHeld, int64(o.Free))
	w.Out++
}

// release returns everything held for a unit that comes back or closes.
func (b *books) release(w *state.Wallet, o *state.Out) {
	move(&w.Reserved, &w.Available, o.Money())
	move(&w.FreeHeld, &w.Free, int64(o.Free))
	w.Out--
}

// spend settles one page of a unit. If the unit holds a free request, that pays. Otherwise the held
// money pays the price, at most what is held per page. The rest of the page's hold is returned. It
// returns the charge and whether a free request paid.
func (b *books) spend(w *state.Wallet, o *state.Out, paid bool, price int64) (charged int64,
	byFree bool) {
	held := o.Money()
	heldFree := o.Free
	switch {
	case paid && o.Free > 0:
		byFree = true
		move(&w.FreeHeld, &b.system.FreeUsed, 1)
		heldFree--
		o.Free--
	case paid:
		charged = min(price, o.Price)
		move(&w.Reserved, &b.system.Revenue, charged)
	}
	o.Grant--
	o.Free = min(o.Free, o.Grant)
	move(&w.Reserved, &w.Available, held-charged-o.Money())
	move(&w.FreeHeld, &w.Free, int64(heldFree-o.Free))
	return charged, byFree
}

// seal makes an entry immutable. It sets the entry's place in the customer's order, and the running
// sum.
func (b *books) seal(w *state.Wallet, e *state.Entry, status string) {
	w.Sequence++
	w.Sealed += e.Amount
	e.Status, e.Sequence, e.BalanceAfter, e.SettledAt = status, w.Sequence, w.Sealed, b.tx.Now
}

// exactMicros bounds balances that adjustments make, in both directions. Every client reads whole
// numbers up to it exactly (RFC 8259, section 6). It is nine billion euros.
const exactMicros = 1<<53 - 1

// adjust books an operator's adjustment.
func (b *books) adjust(w *state.Wallet, amount int64) error {
	after := w.Balance() + amount
	if b.tx.ClusterVersion() >= 2 &&
		(amount > 0 && after > exactMicros || amount < 0 && after < -exactMicros) {
		return fault.Invalid(fault.AmountOverflow, "amountMicros",
			"the balance would leave the range that clients read exactly")
	}
	return transfer(&b.system.Adjustments, &w.Available, w.Balance(), amount)
}

// clear books money that the payment provider took for a wallet; nil: for no known customer. amount
// is negative when money goes back.
func (b *books) clear(w *state.Wallet, amount int64) error {
	if w == nil {
		return transfer(&b.system.Clearing, &b.system.Unmatched, b.system.Unmatched, amount)
	}
	return transfer(&b.system.Clearing, &w.Available, w.Balance(), amount)
}

// transfer moves an amount from outside to an account with a balance, within the ledger's range.
func transfer(from, to *int64, balance, amount int64) error {
	const limit = math.MaxInt64 / 4 // sums of a few balances never overflow
	if amount > limit-max(balance, 0) || amount < -limit-min(balance, 0) ||
		*from-amount > limit || *from-amount < -limit {
		return fault.Invalid(fault.AmountOverflow, "amountMicros",
			"the balance would leave the range of the ledger")
	}
	move(from, to, amount)
	return nil
}

// save writes the books.
func (b *books) save() {
	system := b.system
	b.tx.PutBooks(&system)
	for _, w := range b.wallets { // each write is to another record: order does not matter
		copied := *w
		notifyLow(b.tx, &copied)
		b.tx.PutWallet(&copied)
	}
}
