package fsm

import (
	"bytes"
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
)

// owner gives the commands of a customer in any order, many of which are refused.
type owner struct {
	*bench
	draw func(what string, most int) int
}

// try applies a command, unless the cluster's version lacks it.
func (o *owner) try(payload command.Payload) {
	data, err := o.m.Encode(o.ids.New(), o.now, payload, nil)
	if err == nil {
		o.index++
		o.m.Apply(o.index, data)
	}
}

// remove previews a deletion, and then makes it.
func (o *owner) remove(d command.Deletion, payload command.Payload) {
	o.try(command.PreviewDeletePayload{Deletion: d, Token: "t"})
	o.try(payload)
}

// group returns one of the customer's groups; zero: it has none.
func (o *owner) group() ids.ID {
	groups := o.view().Groups("a")
	if len(groups) == 0 {
		return ids.ID{}
	}
	return groups[o.draw("group", len(groups)-1)].ID
}

// scrapers lists the customer's scrapers.
func (o *owner) scrapers() (all []*state.Scraper) {
	o.view().Scrapers("a", func(s *state.Scraper) bool { all = append(all, s); return true })
	return all
}

// count counts what the customer has by its records alone.
func (o *owner) count() (count state.Owned) {
	v := o.view()
	for _, g := range v.Groups("a") {
		count.Shares += len(v.Shares(g.ID))
		count.Categories += len(v.Categories(g.ID))
		if g.Of.IsZero() {
			count.Groups++
			v.GroupScrapers(g.ID, func(*state.Scraper) bool { count.Scrapers++; return true })
		}
	}
	return count
}

// write changes the state besides commands.
func (o *owner) write(apply func(tx *state.Tx)) {
	o.index++
	err := o.m.Store().Update(o.index, o.now, func(tx *state.Tx) error { apply(tx); return nil })
	if err != nil {
		o.t.Fatal(err)
	}
}

func (o *owner) step() {
	group, name := o.group(), fmt.Sprint("n", o.draw("name", 5))
	email, all := name+"@x.test", o.scrapers()
	put := command.PutScraperPayload{ID: o.ids.New(), Customer: "a", Group: group,
		Spec: model.Scraper{Name: name, Type: model.SingleProduct, ItemsConfig: []model.Field{
			{Name: "title", Selector: "h1", Kind: model.Text}}}}
	deletion := command.Deletion{Customer: "a", Operation: command.OpDeleteGroup, Target: group}
	switch o.draw("step", 11) {
	case 0:
		o.try(command.PutGroupPayload{Create: true, ID: o.ids.New(), Customer: "a", Name: name})
	case 1, 2:
		put.Create = true
		o.try(put)
	case 3: // perhaps into another group
		if len(all) > 0 {
			put.ID = all[o.draw("scraper", len(all)-1)].ID
			o.try(put)
		}
	case 4:
		o.remove(deletion, command.DeleteGroupPayload{Deletion: deletion, Token: "t"})
	case 5:
		if len(all) > 0 {
			deletion.Operation = command.OpDeleteScraper
			deletion.Target = all[o.draw("scraper", len(all)-1)].ID
			o.remove(deletion, command.DeleteScraperPayload{Deletion: deletion, Token: "t"})
		}
	case 6:
		o.try(shareWith(group, email, name+"@y.test"))
	case 7:
		o.try(command.RevokeSharePayload{Customer: "a", Group: group, Email: email})
	case 8:
		o.try(o.category(group, name, `{"a":1}`))
	case 9:
		if categories := o.view().Categories(group); len(categories) > 0 {
			deletion = deletionOfCategory(group, categories[0].ID)
			o.remove(deletion, command.DeleteCategoryPayload{Deletion: deletion, Token: "t"})
		}
	case 10:
		result := o.result(group, state.Enriched)
		o.try(result)
		o.try(command.EndImportPayload{Job: result.Job, Items: 1})
	case 11:
		o.pass()
	}
}

// pass raises the cluster's version, restores a snapshot, or drops the counts as a snapshot from
// before them does.
func (o *owner) pass() {
	switch o.draw("event", 2) {
	case 0:
		o.try(command.ActivateVersionPayload{Version: command.Newest})
	case 1:
		var file bytes.Buffer
		if err := o.m.Snapshot().Write(&file); err != nil {
			o.t.Fatal(err)
		}
		if err := o.m.Restore(&file); err != nil {
			o.t.Fatal(err)
		}
	case 2:
		o.write(func(tx *state.Tx) {
			customer := *tx.Customer("a")
			customer.Owned = nil
			tx.PutCustomer(&customer)
		})
	}
}

// TestCountsOfWhatCustomersOwn compares the counts that are kept with the records, over any order
// of commands. Before the cluster's upgrade none are kept. From then on each change leaves counts.
func TestCountsOfWhatCustomersOwn(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		o := &owner{&bench{t: t, m: New(), now: 1}, func(what string, most int) int {
			return rapid.IntRange(0, most).Draw(rt, what)
		}}
		o.must(command.CreateClusterPayload{Version: uint32(1 + o.draw("version", 1)),
			ID: o.ids.New(), Shards: 1, FreeGrant: 5, Prices: testPrices})
		o.must(command.OpenCustomerPayload{Customer: "a", Entry: o.ids.New()})
		had := state.Owned{}
		for range 1 + o.draw("steps", 60) {
			o.step()
			has, v := o.count(), o.view()
			kept := v.Customer("a").Owned
			if known := v.Owned("a"); known != has || kept != nil && *kept != has {
				rt.Fatalf("%+v and %+v are kept, want %+v", known, kept, has)
			}
			if v.ClusterVersion() < state.OwnedSince && kept != nil {
				rt.Fatalf("%+v is kept before the upgrade", *kept)
			}
			if v.ClusterVersion() >= state.OwnedSince && has != had && has != (state.Owned{}) &&
				kept == nil {
				rt.Fatalf("nothing is kept of %+v", has)
			}
			had = has
		}
	})
}
