package state

import (
	"github.com/hashicorp/go-memdb"

	"shoal.dev/shoal/pkg/ids"
)

func customersTable() *memdb.TableSchema {
	return table("customers", index("id", true, func(c *Customer) []any { return []any{c.Ref} }))
}

// Customer is nil when there is none of that ref.
func (v *View) Customer(ref string) *Customer { return first[Customer](v, "customers", "id", ref) }

// Customers lists all customers by ref.
func (v *View) Customers() []*Customer { return all[Customer](v, "customers", "id_prefix") }

// PutCustomer adds or replaces.
func (t *Tx) PutCustomer(c *Customer) { put(t, "customers", c) }

func keysTable() *memdb.TableSchema {
	return table("keys",
		index("id", true, func(k *Key) []any { return []any{k.ID} }),
		index("prefix", true, func(k *Key) []any { return []any{k.Prefix} }),
		index("customer", true, func(k *Key) []any { return []any{k.Customer, k.CreatedAt, k.ID} }),
	)
}

// Key is nil when there is none of that id.
func (v *View) Key(id ids.ID) *Key { return first[Key](v, "keys", "id", id) }

// KeyByPrefix is nil when there is none of that prefix.
func (v *View) KeyByPrefix(prefix string) *Key { return first[Key](v, "keys", "prefix", prefix) }

// Keys lists a customer's keys, oldest first.
func (v *View) Keys(customer string) []*Key {
	return all[Key](v, "keys", "customer_prefix", customer)
}

// PutKey adds or replaces.
func (t *Tx) PutKey(k *Key) { put(t, "keys", k) }

// RemoveKey removes.
func (t *Tx) RemoveKey(k *Key) { remove(t, "keys", k) }
