package fsm

import (
	"slices"

	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/work"
)

// errInternal refuses changes to what only the service makes.
func errInternal(field string) error {
	return fault.Invalid(fault.InvalidRequest, field,
		"the service makes this group and its rows of another group's: they are read alone")
}

// protectGroup gives a group a matching setup, and its scrapers their matched columns.
func protectGroup(tx *state.Tx, p command.ProtectGroupPayload) (command.None, error) {
	if len(p.Columns) > command.MaxKeyColumns || slices.ContainsFunc(p.Columns,
		func(c command.KeyColumn) bool { return len(c.Column) > command.MaxKeyColumn }) {
		return command.None{}, fault.Invalid(fault.InvalidRequest, "columns",
			"are at most %d, of %d bytes each", command.MaxKeyColumns, command.MaxKeyColumn)
	}
	group := tx.Group(p.Group)
	if group == nil || !group.Of.IsZero() {
		return command.None{}, nil
	}
	setUp(tx, group)
	for _, c := range p.Columns {
		scraper := tx.Scraper(c.Scraper)
		if scraper == nil || scraper.Group != group.ID || scraper.Spec.Type != model.File ||
			c.Column == "" {
			continue
		}
		protection := state.Protection{}
		if scraper.Protection != nil {
			protection = *scraper.Protection
		}
		if protection.Matched != "" || !tx.Protects(scraper) {
			continue
		}
		protection.Matched = c.Column
		known := *scraper
		known.Protection = &protection
		tx.PutScraper(&known)
	}
	return command.None{}, nil
}

// fixed returns the key column of a protected scraper. If none is fixed yet, it fixes column.
func fixed(tx *state.Tx, id ids.ID, column string) string {
	scraper, protection := tx.Scraper(id), state.Protection{}
	if scraper.Protection != nil {
		protection = *scraper.Protection
	}
	if protection.Key == "" {
		protection.Key = column
		known := *scraper
		known.Protection = &protection
		tx.PutScraper(&known)
	}
	return protection.Key
}

func fixKey(tx *state.Tx, p command.FixKeyPayload) (command.None, error) {
	known := tx.Import(p.Job)
	if known == nil || known.Ended != 0 || known.Key != "" || p.Column == "" ||
		len(p.Column) > command.MaxKeyColumn || !tx.Protects(tx.Scraper(known.Scraper)) {
		return command.None{}, nil
	}
	keyed := *known
	keyed.Key, keyed.Heavy = fixed(tx, known.Scraper, p.Column), true
	tx.PutImport(&keyed)
	return command.None{}, nil
}

// setUp records when a group got its matching setup.
func setUp(tx *state.Tx, group *state.Group) {
	if group.Setup == 0 {
		with := *group
		with.Setup = tx.Now
		tx.PutGroup(&with)
	}
}

// beginResult makes a run whose rows background work makes from other rows.
func beginResult(tx *state.Tx, p command.BeginResultPayload) (command.BegunResult, error) {
	none := command.BegunResult{}
	if job := tx.Job(p.Job); job != nil {
		return command.BegunResult{Job: job.ID, Group: job.Group, Scraper: job.Scraper}, nil
	}
	group := tx.Group(p.Group)
	switch {
	case group == nil || group.Customer != p.Customer:
		return none, fault.Invalid(fault.NotFound, "id", "there is no such group")
	case !group.Of.IsZero():
		return none, errInternal("id")
	case p.Made != state.Enriched && p.Made != state.Matched || work.Role(p.Kind) != "ingest" ||
		len(p.Args) > command.MaxResultArgs:
		return none, fault.New(fault.InvalidRequest, "no rows are made this way")
	case tx.CurrentPrices() == nil:
		return none, fault.New(fault.Unauthorized, "the customer has no wallet")
	}
	if err := roomForImport(tx, p.Customer); err != nil {
		return none, err
	}
	sibling := tx.Sibling(group.ID, p.Made)
	scraper := internalOf(tx, sibling)
	if scraper != nil {
		if err := idle(tx, scraper.ID); err != nil {
			return none, err
		}
		scraper = tx.Scraper(scraper.ID)
	}
	if p.Made == state.Matched {
		setUp(tx, group)
	}
	if sibling == nil {
		sibling = &state.Group{ID: p.NewGroup, Customer: p.Customer, StartType: "NONE",
			Of: group.ID, Made: p.Made, CreatedAt: tx.Now, UpdatedAt: tx.Now}
		nameSibling(sibling, group)
		tx.PutGroup(sibling)
	}
	if scraper == nil {
		scraper = &state.Scraper{ID: p.NewScraper, Customer: p.Customer, Group: sibling.ID,
			Spec:      model.Scraper{Name: string(p.Made), Type: model.File},
			CreatedAt: tx.Now, UpdatedAt: tx.Now}
		if err := revise(tx, scraper); err != nil {
			return none, err
		}
		saveScraper(tx, scraper)
	}
	openImport(tx, scraper, &state.Import{Job: p.Job}, &state.Work{Kind: p.Kind, Args: p.Args})
	return command.BegunResult{Job: p.Job, Group: sibling.ID, Scraper: scraper.ID}, nil
}

// internalOf returns the scraper of a sibling, nil when it has none.
func internalOf(tx *state.Tx, sibling *state.Group) (scraper *state.Scraper) {
	if sibling != nil {
		tx.GroupScrapers(sibling.ID, func(s *state.Scraper) bool { scraper = s; return false })
	}
	return scraper
}

// dropUnmerged removes the group of a merge that ended without rows, unless an earlier merge has
// some.
func dropUnmerged(tx *state.Tx, job *state.Job) {
	group, scraper := tx.Group(job.Group), tx.Scraper(job.Scraper)
	if group != nil && group.Made == state.Enriched && scraper != nil && !scraper.Filled {
		dropGroup(tx, group, false)
	}
}

// nameSibling derives a sibling's name from its group's.
func nameSibling(sibling, group *state.Group) {
	end := "_" + string(sibling.Made)
	sibling.Name = group.Name + end
	sibling.DataTable = group.DataTable[:min(len(group.DataTable), maxLabel-len(end))] + end
}

const maxLabel = 63 // bytes of a dataTable

// renameSiblings updates the names of a group's siblings after the group's.
func renameSiblings(tx *state.Tx, group *state.Group) {
	for _, sibling := range tx.Siblings(group.ID) {
		named := *sibling
		nameSibling(&named, group)
		if named.Name != sibling.Name || named.DataTable != sibling.DataTable {
			named.UpdatedAt = tx.Now
			tx.PutGroup(&named)
		}
	}
}

// resultEvent returns the event of an ended result run, and the group that has its rows. "" stands
// for the event of any run.
func resultEvent(tx *state.Tx, job *state.Job) (model.Event, *state.Group) {
	group := tx.Group(job.Group)
	switch {
	case group == nil || group.Of.IsZero():
		return "", nil
	case job.State == model.Completed && group.Made == state.Enriched:
		return model.MergeCompleted, group
	case job.State == model.Completed:
		return model.MatchCompleted, group
	case group.Made == state.Matched:
		return model.MatchFailed, group
	}
	return "", group
}
