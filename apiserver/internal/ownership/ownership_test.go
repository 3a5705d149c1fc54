package ownership_test

import (
	"testing"
	"time"

	"shoal.dev/shoal/apiserver/internal/ownership"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/controlplane/client/clienttest"
	"shoal.dev/shoal/pkg/clock"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/rowstore/rowstoretest"
)

// TestForeignIsMissing: a foreign record gets exactly the fault of a missing one.
func TestForeignIsMissing(t *testing.T) {
	now := clock.NewManual(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	c, source := clienttest.New(t, now), ids.Random{Now: now.Now}
	for _, customer := range []string{"alice", "bob"} {
		c.Must(t, client.OpenCustomer{Customer: customer, Entry: source.New()})
	}
	group, scraper, missing := source.New(), source.New(), source.New()
	c.Must(t, client.PutGroup{Create: true, ID: group, Customer: "alice", Name: "g",
		DataTable: "t", StartType: "MANUAL"})
	c.Must(t, client.PutScraper{Create: true, ID: scraper, Customer: "alice", Group: group,
		Spec: model.Scraper{Name: "s", Type: model.SingleProduct,
			SourceConfig: model.SourceConfig{URL: "https://shop.test/"}}})
	v := c.View()
	history := client.NewHistory(&rowstoretest.Archive{})
	for _, kind := range []struct {
		code fault.Code
		id   ids.ID // alice's id; zero: she has none
		ask  func(customer string, id ids.ID) error
	}{
		{fault.NotFound, group, func(customer string, id ids.ID) error {
			_, err := ownership.Group(v, customer, id, "f")
			return err
		}},
		{fault.ScraperNotFound, scraper, func(customer string, id ids.ID) error {
			_, err := ownership.Scraper(v, customer, id, "f")
			return err
		}},
		{fault.JobNotFound, ids.ID{}, func(customer string, id ids.ID) error {
			_, err := ownership.Job(t.Context(), history, v, customer, id, "f")
			return err
		}},
		{fault.SchemaNotFound, ids.ID{}, func(customer string, id ids.ID) error {
			_, err := ownership.Schema(v, customer, id, "f")
			return err
		}},
	} {
		if err := kind.ask("alice", kind.id); !kind.id.IsZero() && err != nil {
			t.Errorf("%s: the owner got %v", kind.code, err)
		}
		nobodys, foreign := kind.ask("bob", missing), kind.ask("bob", kind.id)
		if fault.CodeOf(nobodys) != kind.code || foreign == nil ||
			foreign.Error() != nobodys.Error() {
			t.Errorf("%s: missing %v, foreign %v", kind.code, nobodys, foreign)
		}
	}
}
