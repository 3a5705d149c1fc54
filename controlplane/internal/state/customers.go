package state

import "shoal.dev/shoal/pkg/ids"

var customersTable = define(1, "customers", index("id", true, func(c *Customer) []any { return []any{c.Ref} }))

// Customer is nil when there is none of that ref.
func (v *View) Customer(ref string) *Customer { return customersTable.first(v, "id", ref) }

// Customers lists all customers by ref.
func (v *View) Customers() []*Customer { return customersTable.all(v, "id_prefix") }

// PutCustomer adds or replaces.
func (t *Tx) PutCustomer(c *Customer) { customersTable.put(t, c) }

var keysTable = define(1, "keys",
	index("id", true, func(k *Key) []any { return []any{k.ID} }),
	index("prefix", true, func(k *Key) []any { return []any{k.Prefix} }),
	index("customer", true, func(k *Key) []any { return []any{k.Customer, k.CreatedAt, k.ID} }),
)

// Key is nil when there is none of that id.
func (v *View) Key(id ids.ID) *Key { return keysTable.first(v, "id", id) }

// KeyByPrefix is nil when there is none of that prefix.
func (v *View) KeyByPrefix(prefix string) *Key { return keysTable.first(v, "prefix", prefix) }

// Keys lists a customer's keys, oldest first.
func (v *View) Keys(customer string) []*Key {
	return keysTable.all(v, "customer_prefix", customer)
}

// PutKey adds or replaces.
func (t *Tx) PutKey(k *Key) { keysTable.put(t, k) }

// RemoveKey removes.
func (t *Tx) RemoveKey(k *Key) { keysTable.remove(t, k) }
