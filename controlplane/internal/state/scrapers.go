package state

import (
	"slices"

	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
)

// Group is one data collection.
type Group struct {
	ID                  ids.ID `cbor:"1,keyasint"`
	Customer            string `cbor:"2,keyasint"`
	Name                string `cbor:"3,keyasint"`
	DataTable           string `cbor:"4,keyasint"`
	StartType           string `cbor:"5,keyasint"`
	ShouldMatchProducts bool   `cbor:"6,keyasint,omitempty"`
	CreatedAt           int64  `cbor:"7,keyasint"`
	UpdatedAt           int64  `cbor:"8,keyasint"`
	Scrapers            int    `cbor:"9,keyasint,omitempty"` // members
	// Retention is how many of each scraper's newest runs keep their rows, 0: the scraper decides.
	Retention int `cbor:"10,keyasint,omitempty" since:"2"`
	// Zone is the time zone of its starts, "": UTC.
	Zone string `cbor:"11,keyasint,omitempty" since:"2"`
	// Of is the group that this one is a sibling of, zero: none. Made says how its rows are made
	// from that group's.
	Of   ids.ID `cbor:"12,keyasint,omitzero" since:"2"`
	Made Made   `cbor:"13,keyasint,omitempty" since:"2"`
	// Setup is when the group got its matching setup, in Unix milliseconds; 0: it has none.
	Setup int64 `cbor:"14,keyasint,omitempty" since:"2"`
	// Quarantine delays its runs: they count once COMPLETED, and unusual ones once released.
	Quarantine bool `cbor:"15,keyasint,omitempty" since:"2"`
	// Alerts says which changes between runs its customer is told of, nil: none.
	Alerts *Alerts `cbor:"16,keyasint,omitempty" since:"2"`
	// RowsRemoved is when a scraper was last deleted with rows of the group, in Unix milliseconds;
	// 0: never. Files of scrapers that were moved away count, too: they take rows along.
	RowsRemoved int64 `cbor:"17,keyasint,omitempty" since:"2"`
}

var groupsTable = define(1, "groups",
	index("id", true, func(g *Group) []any { return []any{g.ID} }),
	index("customer", true, func(g *Group) []any { return []any{g.Customer, g.CreatedAt, g.ID} }),
	index("sibling", true, func(g *Group) []any {
		if g.Of.IsZero() {
			return nil
		}
		return []any{g.Of, string(g.Made)}
	}),
).told((*Group).telling)

// NamesakesSince is the first cluster version in which a customer's groups may share a name
// (decision 46).
const NamesakesSince = 2

// Group returns the group with an id, or nil.
func (v *View) Group(id ids.ID) *Group { return groupsTable.first(v, "id", id) }

// Groups lists a customer's groups, oldest first.
func (v *View) Groups(customer string) []*Group {
	return groupsTable.all(v, "customer_prefix", customer)
}

// EachGroup visits all groups, by id, until visit returns false.
func (v *View) EachGroup(visit func(*Group) bool) {
	groupsTable.each(v, false, visit, "id_prefix")
}

// Sibling returns the group whose rows are made from another's in a way, nil when there is none.
func (v *View) Sibling(of ids.ID, made Made) *Group {
	return groupsTable.first(v, "sibling", of, string(made))
}

// Siblings lists the groups whose rows are made from another group's.
func (v *View) Siblings(of ids.ID) []*Group { return groupsTable.all(v, "sibling_prefix", of) }

// PutGroup adds or replaces a group.
func (t *Tx) PutGroup(g *Group) {
	by := g.owned().less(t.Group(g.ID).owned())
	groupsTable.put(t, g)
	t.countIn(g.Customer, by)
}

// Scraper is a saved scraper. Revision counts up with every change of its recipe.
type Scraper struct {
	ID        ids.ID        `cbor:"1,keyasint"`
	Customer  string        `cbor:"2,keyasint"`
	Group     ids.ID        `cbor:"3,keyasint"`
	Spec      model.Scraper `cbor:"4,keyasint"`
	Revision  uint32        `cbor:"5,keyasint"`
	CreatedAt int64         `cbor:"6,keyasint"`
	UpdatedAt int64         `cbor:"7,keyasint"`
	// ListRun marks the scraper of a list run; Tag is its endpoint tag, "" without one.
	ListRun bool   `cbor:"8,keyasint,omitempty"`
	Tag     string `cbor:"9,keyasint,omitempty"`
	LastJob ids.ID `cbor:"10,keyasint,omitempty"` // newest run, zero: never run
	// Content names the revision's recipe. In memory Spec shares the content's data; encoded, it is
	// left out. Content is zero until the version ContentsSince is active.
	Content Hash `cbor:"11,keyasint,omitzero" since:"2"`
	// Past sums up the runs that have left the state, nil: none has.
	Past *PastRuns `cbor:"12,keyasint,omitempty" since:"2"`
	// Filled says that a file was imported into it: it has had rows.
	Filled bool `cbor:"13,keyasint,omitempty" since:"2"`
	// Protection says how its files are merged. Nil: its group decides (Protects).
	Protection *Protection `cbor:"14,keyasint,omitempty" since:"2"`
}

var scrapersTable = define(1, "scrapers",
	index("id", true, func(s *Scraper) []any { return []any{s.ID} }),
	index("name", true, (*Scraper).nameKey),
	index("group", true, func(s *Scraper) []any { return []any{s.Group, s.CreatedAt, s.ID} }),
).written((*Scraper).own).told((*Scraper).telling)

// nameKey is the scope of a name: the customer, or for an upload its group (decision 46).
func (s *Scraper) nameKey() []any {
	if s.Spec.Type == model.File {
		return []any{s.Customer, s.Spec.Name, s.Group}
	}
	return []any{s.Customer, s.Spec.Name}
}

// UploadByName returns the upload with a name in a group, nil when there is none.
func (v *View) UploadByName(customer string, group ids.ID, name string) *Scraper {
	return v.shown(scrapersTable.first(v, "name", customer, name, group))
}

// Scraper returns the scraper with an id; nil: there is none, or its group was deleted.
func (v *View) Scraper(id ids.ID) *Scraper { return v.shown(v.member(id)) }

// ScraperByName returns a customer's scraper with a name; nil: as for Scraper.
func (v *View) ScraperByName(customer, name string) *Scraper {
	return v.shown(v.MemberByName(customer, name))
}

// member returns a scraper, even if its group was deleted.
func (v *View) member(id ids.ID) *Scraper { return scrapersTable.first(v, "id", id) }

// MemberByName returns the scraper with a name, even if its group was deleted.
func (v *View) MemberByName(customer, name string) *Scraper {
	return scrapersTable.first(v, "name", customer, name)
}

// shown returns the scraper, or nil if its group was deleted.
func (v *View) shown(s *Scraper) *Scraper {
	if s == nil || v.DeletedGroup(s.Group) != nil {
		return nil
	}
	return s
}

// Scrapers visits a customer's scrapers, newest first, until visit returns false. It leaves out
// siblings' scrapers, which are the service's. It merges the groups' lists: a separate index would
// cost each scraper 400 bytes of memory.
func (v *View) Scrapers(customer string, visit func(*Scraper) bool) {
	var newest queue
	for _, g := range v.Groups(customer) {
		if !g.Of.IsZero() {
			continue
		}
		newest.add(scrapersTable.backwards(v, "group_prefix", g.ID))
	}
	for len(newest) > 0 && visit(newest[0].next) {
		newest.advance()
	}
}

// GroupScrapers visits a group's scrapers, newest first, until visit returns false. In a deleted
// group it visits those still to be removed.
func (v *View) GroupScrapers(group ids.ID, visit func(*Scraper) bool) {
	scrapersTable.each(v, true, visit, "group_prefix", group)
}

// GroupScrapersFrom visits a group's scrapers, oldest first, until visit returns false. It begins
// after the scraper made at a time with an id.
func (v *View) GroupScrapersFrom(group ids.ID, made int64, id ids.ID, visit func(*Scraper) bool) {
	scrapersTable.from(v, func(s *Scraper) bool {
		if s.Group == group && s.CreatedAt == made && s.ID == id {
			return true
		}
		return s.Group == group && visit(s)
	}, "group", group, made, id)
}

// GroupsOf returns the groups where a scraper has rows, as far as the state knows. These are its
// own, and those of runs before it was moved.
func (v *View) GroupsOf(s *Scraper) []ids.ID {
	groups := []ids.ID{s.Group}
	add := func(group ids.ID) {
		if !slices.Contains(groups, group) {
			groups = append(groups, group)
		}
	}
	v.ScraperJobs(s.ID, func(j *Job) bool { add(j.Group); return true })
	if s.Past != nil {
		for _, left := range slices.Backward(s.Past.Groups) {
			add(left)
		}
	}
	return groups
}
