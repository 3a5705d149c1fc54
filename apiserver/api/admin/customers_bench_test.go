package admin

import (
	"fmt"
	"testing"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/controlplane/client/clienttest"
	"shoal.dev/shoal/pkg/clock"
)

// BenchmarkCustomers searches 100,000 customers by a part of an address, and by a whole one.
func BenchmarkCustomers(b *testing.B) {
	fake := clienttest.New(b, clock.System{})
	fake.Spoil(b, func(tx *clienttest.Tx) {
		for n := range 100_000 {
			ref := fmt.Sprintf("customer-%06d", n)
			tx.PutCustomer(&client.Customer{Ref: ref})
			tx.PutProfile(&client.Profile{Customer: ref, Email: ref + "@shop.test"})
		}
	})
	view := fake.View()
	for name, q := range map[string]string{"part": "77777@shop",
		"whole": "customer-077777@shop.test"} {
		b.Run(name, func(b *testing.B) {
			in := &customersRequest{Q: q, Size: 50}
			for b.Loop() {
				if page := in.list(view); page.TotalElements != 1 {
					b.Fatalf("%d customers", page.TotalElements)
				}
			}
		})
	}
}
