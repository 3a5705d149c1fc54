package fsm

import (
	"bytes"
	"math"
	"slices"

	"shoal.dev/shoal/controlplane/internal/codec"
	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
)

func putGroup(tx *state.Tx, p command.PutGroupPayload) (state.Group, error) {
	group := state.Group{ID: p.ID, Customer: p.Customer, CreatedAt: tx.Now}
	count := 0 // for a new group: how many there are
	if p.Create {
		count = tx.OwnGroups(p.Customer)
		if count >= maxGroups {
			return state.Group{},
				fault.New(fault.LimitReached, "a customer has at most %d groups", maxGroups)
		}
		if err := p.Cap.Allows(count); err != nil {
			return state.Group{}, err
		}
	} else {
		known := tx.Group(p.ID)
		if known == nil || known.Customer != p.Customer {
			return state.Group{}, fault.Invalid(fault.NotFound, "id", "there is no such group")
		}
		if !known.Of.IsZero() {
			return state.Group{}, errInternal("id")
		}
		group = *known
		if p.Left != 0 {
			leaveMembers(&p, known)
			if p.Alerts != nil && p.Retention == 1 { // two requests, each valid on its own
				return state.Group{}, fault.Invalid(fault.InvalidRequest, "changeAlerts",
					"needs the rows of two runs: raise retentionCount or clear it")
			}
		}
	}
	if err := checkAlerts(p.Alerts); err != nil {
		return state.Group{}, err
	}
	if tx.ClusterVersion() < state.NamesakesSince &&
		slices.ContainsFunc(tx.Groups(p.Customer), func(other *state.Group) bool {
			return other.Name == p.Name && other.ID != p.ID
		}) {
		return state.Group{}, fault.Invalid(fault.NameTaken, "name", "another group has this name")
	}
	group.Name, group.DataTable, group.StartType = p.Name, p.DataTable, p.StartType
	group.ShouldMatchProducts, group.UpdatedAt = p.ShouldMatchProducts, tx.Now
	group.Retention, group.Zone, group.Quarantine = p.Retention, p.Zone, p.Quarantine
	group.Alerts = p.Alerts
	tx.PutGroup(&group)
	renameSiblings(tx, &group)
	arrangeGroup(tx, &group)
	if p.Create {
		notifyNear(tx, p.Customer, p.Cap, count, tx.OwnGroups(p.Customer))
	}
	return group, nil
}

// leaveMembers fills the members that a request left out from the current group.
func leaveMembers(p *command.PutGroupPayload, known *state.Group) {
	leave(p, command.GroupName, &p.Name, known.Name)
	leave(p, command.GroupDataTable, &p.DataTable, known.DataTable)
	leave(p, command.GroupStartType, &p.StartType, known.StartType)
	leave(p, command.GroupMatching, &p.ShouldMatchProducts, known.ShouldMatchProducts)
	leave(p, command.GroupRetention, &p.Retention, known.Retention)
	leave(p, command.GroupZone, &p.Zone, known.Zone)
	leave(p, command.GroupQuarantine, &p.Quarantine, known.Quarantine)
	var alerts, had state.Alerts
	if p.Alerts != nil {
		alerts = *p.Alerts
	}
	if known.Alerts != nil {
		had = *known.Alerts
	}
	leave(p, command.GroupAlertsOn, &alerts.On, had.On)
	leave(p, command.GroupAlertsKey, &alerts.Key, had.Key)
	if p.Alerts = nil; len(alerts.On) > 0 {
		p.Alerts = &alerts
	}
}

func leave[T any](p *command.PutGroupPayload, member command.GroupMembers, value *T, is T) {
	if p.Left&member != 0 {
		*value = is
	}
}

func putScraper(tx *state.Tx, p command.PutScraperPayload) (state.Scraper, error) {
	scraper, err := checkScraper(tx, &p)
	if err != nil {
		return state.Scraper{}, err
	}
	saveNew(tx, &scraper, &p)
	scraper.Content = state.Hash{} // only the record has it
	return scraper, nil
}

// saveNew writes a scraper that checkScraper has made. It notifies a customer near its plan's cap.
func saveNew(tx *state.Tx, scraper *state.Scraper, p *command.PutScraperPayload) {
	saveScraper(tx, scraper)
	if p.Create {
		count := tx.OwnScrapers(p.Customer)
		notifyNear(tx, p.Customer, p.Cap, count-1, count)
	}
}

// putRetention changes one setting. It is not part of the recipe, so the revision stays.
func putRetention(tx *state.Tx, p command.PutRetentionPayload) (state.Scraper, error) {
	scraper, err := retained(tx, p)
	if err != nil {
		return state.Scraper{}, err
	}
	if tx.Internal(&scraper) {
		return state.Scraper{}, errInternal("id")
	}
	if p.Count < 0 {
		return state.Scraper{},
			fault.Invalid(fault.InvalidRequest, "retentionCount", "must be at least 1")
	}
	config := model.ScraperConfig{}
	if scraper.Spec.Config != nil {
		config = *scraper.Spec.Config
	}
	if config.RetentionCount = nil; p.Count > 0 {
		config.RetentionCount = &p.Count
	}
	scraper.Spec.Config, scraper.UpdatedAt = &config, tx.Now
	tx.PutScraper(&scraper)
	scraper.Content = state.Hash{} // only the record has it
	return scraper, nil
}

// retained returns a copy of the scraper whose retention is set.
func retained(tx *state.Tx, p command.PutRetentionPayload) (state.Scraper, error) {
	known := tx.Scraper(p.Scraper)
	if known == nil || known.Customer != p.Customer {
		return state.Scraper{},
			fault.Invalid(fault.ScraperNotFound, "id", "there is no such scraper")
	}
	return *known, nil
}

// checkScraper makes the scraper that the payload describes, without writing anything.
func checkScraper(tx *state.Tx, p *command.PutScraperPayload) (state.Scraper, error) {
	scraper := state.Scraper{ID: p.ID, Customer: p.Customer, CreatedAt: tx.Now}
	if p.Create {
		if err := command.RoomForScraper(&tx.View, p.Customer, p.Cap); err != nil {
			return scraper, err
		}
	} else {
		known := tx.Scraper(p.ID)
		if known == nil || known.Customer != p.Customer {
			return scraper, fault.Invalid(fault.NotFound, "id", "no scraper has this id")
		}
		if tx.Internal(known) {
			return scraper, errInternal("id")
		}
		scraper = *known
	}
	// a scraper that does not grow is allowed
	if err := command.RoomForRecipe(&tx.View, p.Customer); err != nil &&
		encodedBytes(p.Spec) > encodedBytes(scraper.Spec) {
		return scraper, err
	}
	if group := tx.Group(p.Group); group == nil || group.Customer != p.Customer {
		return scraper, fault.Invalid(fault.GroupNotFound, "groupRef", "there is no such group")
	} else if !group.Of.IsZero() {
		return scraper, errInternal("groupRef")
	}
	if err := checkMove(tx, &scraper, p.Group); err != nil {
		return scraper, err
	}
	if other := namesake(tx, p); other != nil && other.ID != p.ID {
		return scraper, fault.Invalid(fault.NameTaken, "name", "another scraper has this name")
	}
	if !p.Create && (scraper.Spec.Type == model.File) != (p.Spec.Type == model.File) {
		return scraper, fault.Invalid(fault.TypeNotRunnable, "type",
			"the scraper of an upload stays one, and no other becomes one")
	}
	if scraper.Group != p.Group && tx.Protects(&scraper) && scraper.Protection == nil {
		scraper.Protection = &state.Protection{} // it stays protected in another group
	}
	scraper.Group, scraper.Spec, scraper.UpdatedAt = p.Group, p.Spec, tx.Now
	if p.Create {
		scraper.ListRun, scraper.Tag = p.ListRun, p.Tag
	}
	return scraper, revise(tx, &scraper)
}

// checkMove refuses to move a scraper whose rows are in as many groups as reads look at.
func checkMove(tx *state.Tx, scraper *state.Scraper, to ids.ID) error {
	if scraper.Group == to || scraper.Group.IsZero() || tx.ClusterVersion() < 2 {
		return nil
	}
	groups := tx.GroupsOf(scraper)
	if len(groups) <= state.MaxPastGroups || slices.Contains(groups, to) {
		return nil
	}
	return fault.Invalid(fault.LimitReached, "groupRef",
		"it was in %d other groups, where its rows still are: move it back to one of them",
		state.MaxPastGroups)
}

// namesake returns the scraper that already uses a name, nil for none. Names are unique per
// customer; if one of the two is an upload, per group (decision 46).
func namesake(tx *state.Tx, p *command.PutScraperPayload) *state.Scraper {
	if upload := tx.UploadByName(p.Customer, p.Group, p.Spec.Name); upload != nil {
		return upload
	}
	other := tx.ScraperByName(p.Customer, p.Spec.Name)
	if other != nil && p.Spec.Type == model.File && other.Group != p.Group {
		return nil
	}
	return other
}

func encodedBytes(spec model.Scraper) int {
	encoded, err := codec.New().Marshal(spec)
	if err != nil {
		return math.MaxInt // cannot happen: the log held it
	}
	return len(encoded)
}

// revise raises the revision if the recipe, including its schema's content, differs from the stored
// one.
func revise(tx *state.Tx, scraper *state.Scraper) error {
	recipe, ok := tx.RecipeOf(scraper.Customer, &scraper.Spec, scraper.Tag)
	if !ok {
		return fault.Invalid(fault.SchemaGone, "schema.id", "the scraper's schema is not there")
	}
	if kept := tx.Recipe(scraper.ID, scraper.Revision); kept == nil ||
		!sameRecipe(kept.Recipe, recipe) {
		scraper.Revision = nextRevision(tx, scraper.Revision)
	}
	return nil
}

// nextRevision returns the next revision. It is above all that a scraper had before a restore. So a
// number never means two recipes to a fetcher, or to an undone run.
func nextRevision(tx *state.Tx, revision uint32) uint32 {
	if cluster := tx.Cluster(); cluster != nil && cluster.Generation != nil && revision > 0 {
		revision = max(revision, cluster.Generation.Revisions)
	}
	return revision + 1
}

// saveScraper writes a checked scraper with its recipe, and updates the groups' counts.
func saveScraper(tx *state.Tx, scraper *state.Scraper) {
	known := tx.Scraper(scraper.ID)
	freeName(tx, scraper.Customer, scraper.Spec.Name)
	if known == nil || known.Group != scraper.Group {
		if known != nil {
			countMember(tx, known.Group, -1)
			scraper.Past = scraper.Past.Left(known.Group)
		}
		countMember(tx, scraper.Group, 1)
	}
	if tx.Recipe(scraper.ID, scraper.Revision) == nil {
		// revise has checked its schema
		recipe, _ := tx.RecipeOf(scraper.Customer, &scraper.Spec, scraper.Tag)
		tx.PutRecipe(&state.Recipe{Scraper: scraper.ID, Revision: scraper.Revision, Recipe: recipe})
	}
	tx.PutScraper(scraper)
	tx.Arrange(state.Schedule{Target: scraper.ID, Customer: scraper.Customer,
		Cron: scraper.Spec.Schedule, Zone: scraper.Spec.ScheduleTimezone})
	pruneRecipes(tx, scraper.ID)
}

// cascadeOfScraper returns what a scraper's deletion takes along: its open runs, its site, and its
// rows if they go, too. If it runs after the preview, or its site's links change, the preview no
// longer holds.
func cascadeOfScraper(tx *state.Tx, d *command.Deletion) (state.Cascade, error) {
	scraper := tx.Scraper(d.Target)
	if scraper == nil || scraper.Customer != d.Customer {
		return state.Cascade{},
			fault.Invalid(fault.ScraperNotFound, "id", "there is no such scraper")
	}
	open := tx.OpenJobsOf(scraper.ID)
	dependants, sites := []ids.ID{scraper.LastJob}, siteCounts{}
	for _, job := range open {
		dependants = append(dependants, job.ID)
	}
	if site := tx.SiteOf(scraper.ID); site != nil {
		dependants = append(dependants, site.Version)
		sites.add(site)
	}
	cascade := state.Cascade{Name: scraper.Spec.Name, Type: "SCRAPER",
		Counts: append([]state.Count{{Name: "openRuns", N: len(open)}}, sites.counts()...)}
	if d.Query == command.WithData {
		cascade.Counts = append(cascade.Counts, state.Count{Name: "rows", N: int(d.Rows)})
	}
	cascade.Digest = digest(dependants) ^ uint64(d.Rows)
	return cascade, nil
}

// maxRemovals bounds a customer's removals under way.
const maxRemovals = 10_000

func deleteScraper(tx *state.Tx, p command.DeleteScraperPayload) (command.None, error) {
	if p.Deletion.Query == command.WithData &&
		len(tx.RemovalsOf(p.Deletion.Customer)) >= maxRemovals {
		return command.None{}, fault.New(fault.LimitReached,
			"the rows of %d deleted scrapers are being removed; come again later", maxRemovals)
	}
	if err := spendPreview(tx, &p.Deletion, p.Token); err != nil {
		return command.None{}, err
	}
	scraper := tx.Scraper(p.Deletion.Target)
	if p.Deletion.Query == command.WithData {
		for _, group := range tx.GroupsOf(scraper) {
			tx.PutRemoval(&state.Removal{Group: group, Scraper: scraper.ID,
				Customer: scraper.Customer, At: tx.Now})
			noteRemoval(tx, group)
		}
	}
	removeScraper(tx, scraper)
	return command.None{}, nil
}

// removeScraper removes a scraper and stops its runs.
func removeScraper(tx *state.Tx, scraper *state.Scraper) {
	used := false
	for _, job := range tx.OpenJobsOf(scraper.ID) {
		used = used || job.Revision == scraper.Revision
		if !job.State.Final() {
			endRun(tx, job, model.StoppedByCustomer)
		}
	}
	countMember(tx, scraper.Group, -1)
	removeSiteOf(tx, scraper.ID)
	tx.RemoveScraper(scraper, used)
	pruneRecipes(tx, scraper.ID)
}

func forgetRemovals(tx *state.Tx, p command.ForgetRemovalsPayload) (command.None, error) {
	for _, ref := range p.Removals {
		if known := tx.Removal(ref.Group, ref.Scraper); known != nil {
			tx.RemoveRemoval(known)
		}
	}
	return command.None{}, nil
}

func countMember(tx *state.Tx, group ids.ID, by int) {
	if g := tx.Group(group); g != nil {
		counted := *g
		counted.Scrapers += by
		tx.PutGroup(&counted)
	}
}

// pruneRecipes drops the recipes that neither the scraper nor one of its open runs uses.
func pruneRecipes(tx *state.Tx, scraper ids.ID) {
	used := map[uint32]bool{}
	if s := tx.Scraper(scraper); s != nil {
		used[s.Revision] = true
	}
	for _, job := range tx.OpenJobsOf(scraper) {
		used[job.Revision] = true
	}
	for _, recipe := range tx.RunRecipes(scraper) {
		if !used[recipe.Revision] {
			tx.RemoveRecipe(recipe)
		}
	}
}

func sameRecipe(a, b model.Recipe) bool {
	c := codec.New()
	left, errLeft := c.Marshal(a)
	right, errRight := c.Marshal(b)
	return errLeft == nil && errRight == nil && bytes.Equal(left, right)
}
