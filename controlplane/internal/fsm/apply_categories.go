package fsm

import (
	"github.com/zeebo/xxh3"

	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
)

// Bounds of categories. The API bounds their filters in bytes.
const (
	maxCategories        = 100   // of a group
	maxCategoriesInTotal = 1_000 // of a customer
)

func putCategory(tx *state.Tx, p command.PutCategoryPayload) (state.Category, error) {
	group := tx.Group(p.Group)
	if group == nil || group.Customer != p.Customer {
		return state.Category{}, fault.Invalid(fault.NotFound, "id", "there is no such group")
	}
	category := state.Category{ID: p.ID, Group: p.Group, Customer: p.Customer, Name: p.Name,
		CreatedAt: tx.Now}
	switch known := tx.CategoryByName(p.Group, p.Name); {
	case known != nil:
		category = *known
		p.Cap = nil // the number does not grow
	case len(tx.Categories(p.Group)) >= maxCategories:
		return state.Category{}, fault.New(fault.LimitReached,
			"a group has at most %d categories", maxCategories)
	case tx.CategoriesOf(p.Customer) >= maxCategoriesInTotal:
		return state.Category{}, fault.New(fault.LimitReached,
			"the groups of a customer have at most %d categories", maxCategoriesInTotal)
	}
	if err := p.Cap.Allows(tx.CategoriesOf(p.Customer)); err != nil {
		return state.Category{}, err
	}
	category.Filters, category.UpdatedAt = p.Filters, tx.Now
	saved := category
	before := tx.CategoriesOf(p.Customer)
	tx.PutCategory(&saved)
	notifyNear(tx, p.Customer, p.Cap, before, tx.CategoriesOf(p.Customer))
	return category, nil
}

// deletedCategory returns the category that a deletion targets, in the group named by its query.
func deletedCategory(tx *state.Tx, d *command.Deletion) *state.Category {
	group, err := ids.Parse(d.Query)
	if err != nil {
		return nil
	}
	c := tx.Category(group, d.Target)
	if c == nil || c.Customer != d.Customer {
		return nil
	}
	return c
}

// cascadeOfCategory has only the category itself, since rows do not refer to it. If its filter
// changes, the preview no longer holds.
func cascadeOfCategory(tx *state.Tx, d *command.Deletion) (state.Cascade, error) {
	category := deletedCategory(tx, d)
	if category == nil {
		return state.Cascade{}, fault.Invalid(fault.NotFound, "categoryId",
			"there is no such category")
	}
	return state.Cascade{Name: category.Name, Type: "CATEGORY",
		Digest: xxh3.Hash(category.Filters)}, nil
}

func deleteCategory(tx *state.Tx, p command.DeleteCategoryPayload) (command.None, error) {
	if err := spendPreview(tx, &p.Deletion, p.Token); err != nil {
		return command.None{}, err
	}
	tx.RemoveCategory(deletedCategory(tx, &p.Deletion))
	return command.None{}, nil
}

// removeCategories removes the categories of a group.
func removeCategories(tx *state.Tx, group ids.ID) {
	for _, category := range tx.Categories(group) {
		tx.RemoveCategory(category)
	}
}
