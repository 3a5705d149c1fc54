package e2e

import (
	"context"
	"net/url"
	"testing"
	"time"

	"shoal.dev/shoal/e2e/suite"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/rowstore"
	"shoal.dev/shoal/testkit/crash"
)

// TestCrashesOfCustomerRemoval kills the process at each point of the removal of a customer with
// rows, a key, a webhook and an open run. In the end none of its data is stored, its credentials
// are refused, and the books are unchanged.
func TestCrashesOfCustomerRemoval(t *testing.T) {
	t.Parallel()
	for _, point := range share(t, []string{"work.erase.before_erase:1",
		"work.remove.before_members:1", "work.remove.before_drop:2",
		"work.remove.after_condense:1", "work.remove.after_erase:2",
		"work.remove.before_forget:2"}) {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			c, first, second := newRepeated(t)
			c.bring()
			ref := suite.Must(c.Whoami(t.Context()))(t)
			if err := c.Call(t.Context(), "PUT", "/api/key/generate",
				url.Values{"name": {"second"}, "scope": {"USER"}}, nil, nil); err != nil {
				t.Fatal(err)
			}
			if err := c.Again(suite.NewKey()).Call(t.Context(), "POST", "/api/webhooks", nil,
				map[string]any{"url": "https://shop.example/",
					"events": []model.Event{model.RunCompleted}},
				nil); err != nil {
				t.Fatal(err)
			}
			c.Down(t)
			c.bring(crash.At + "=" + point)
			third := c.relaunch(first)
			c.removeCustomer(ref)
			if len(c.Deaths) == 0 {
				c.awaitDeath()
			}
			c.awaitErased(ref)
			if err := c.Call(t.Context(), "GET", "/api/wallet", nil, nil,
				nil); suite.CodeOf(err) != "unauthorized" {
				t.Errorf("its key: %v", err)
			}
			token := c.SignIn("--customer", ref)
			if err := token.Call(t.Context(), "GET", "/api/wallet", nil, nil,
				nil); suite.CodeOf(err) != "customer_blocked" {
				t.Errorf("a token of its reference: %v", err)
			}
			runs, differ, err := c.root().RecountOfProduct(t.Context())
			if err != nil || runs != 3 || differ > 0 {
				t.Errorf("%d of %d runs differ, %v", differ, runs, err)
			}
			c.Down(t)
			for _, run := range []suite.Launched{first, second, third} {
				if n := len(suite.Must(c.Records(t.Context(), run.JobID))(t)); n > 0 {
					t.Errorf("run %s has %d page records", run.JobID, n)
				}
			}
			if lists := suite.Must(c.single.Lists(t.Context()))(t); len(lists) > 0 {
				t.Errorf("%d link lists are left", len(lists))
			}
			err = c.withRows(t.Context(), func(store rowstore.Store) error {
				left, err := store.JobsOf(t.Context(), ref, ids.ID{}, 10)
				if len(left) > 0 {
					t.Errorf("of %v something is stored", left)
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
		})
	}
}

// removeCustomer removes a customer in two calls. While its run ends the preview may go stale.
func (c *crashCase) removeCustomer(ref string) {
	c.T.Helper()
	path := "/api/admin/customers/" + ref
	c.survive("remove", func(ctx context.Context) error {
		for {
			var preview struct{ Token string }
			err := c.root().Call(ctx, "POST", path+"/preview-delete", nil, nil, &preview)
			if suite.CodeOf(err) == "not_found" {
				return nil // it was removed before the process died
			}
			if err != nil {
				return err
			}
			err = c.root().Again(suite.NewKey()).Call(ctx, "DELETE", path,
				url.Values{"token": {preview.Token}}, nil, nil)
			if suite.CodeOf(err) != "CASCADE_COUNT_DRIFT" {
				return err
			}
		}
	})
}

// awaitErased waits until only the books of a removed customer are left.
func (c *crashCase) awaitErased(ref string) {
	c.T.Helper()
	for ctx := suite.Within(c.T, 2*suite.Patience); ; {
		var found struct {
			Customer struct{ RemovedAt, ErasedAt *time.Time }
		}
		err := c.root().Call(ctx, "GET", "/api/admin/customers/"+ref, nil, nil, &found)
		if err != nil {
			c.T.Fatal(err)
		}
		if found.Customer.RemovedAt != nil && found.Customer.ErasedAt != nil {
			return
		}
		select {
		case <-ctx.Done():
			c.T.Fatalf("the removal does not end: %+v", found.Customer)
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// root is an administrator under another customer.
func (c *crashCase) root() suite.Client {
	c.T.Helper()
	return c.SignIn("--customer", "root", "--admin")
}
