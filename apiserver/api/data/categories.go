package data

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"shoal.dev/shoal/apiserver/api"
	"shoal.dev/shoal/apiserver/internal/auth"
	"shoal.dev/shoal/apiserver/internal/limits"
	"shoal.dev/shoal/apiserver/internal/operation"
	"shoal.dev/shoal/apiserver/internal/ownership"
	"shoal.dev/shoal/apiserver/internal/plans"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/filter"
	"shoal.dev/shoal/pkg/ids"
)

const (
	// maxCategoryBytes bounds the filter of a category in compact JSON.
	maxCategoryBytes = 16 << 10
	// maxCategories is how many categories a read may name.
	maxCategories = 20
)

// Category is the specification's CustomerCategoryDTO.
type Category struct {
	ID        ids.ID          `json:"id" stamped:"true"`
	Name      string          `json:"name" form:"trimmed-line" unlike:"^[0-9a-fA-F]{24}$" required:"true" min:"1" max:"200" doc:"Unique within the group; a category with the same name is replaced"`
	Filters   json.RawMessage `json:"filters" required:"true" object:"true" doc:"A filter as in reads, at most 16,384 bytes without spaces: {\"price\":{\"$gt\":10}}"`
	CreatedAt api.Time        `json:"createdAt" stamped:"true"`
	UpdatedAt api.Time        `json:"updatedAt" stamped:"true"`
}

// Validate implements operation.Validator.
func (c *Category) Validate() fault.List {
	if len(c.Filters) == 0 {
		return nil
	}
	var invalid *fault.Error
	if _, err := filter.Parse(c.Filters); errors.As(err, &invalid) {
		return fault.List{invalid}
	}
	if len(compacted(c.Filters)) > maxCategoryBytes {
		return fault.List{fault.Invalid(fault.InvalidFilter, "filters",
			"a category has at most %d bytes of them", maxCategoryBytes)}
	}
	return nil
}

// compacted removes the spaces of JSON.
func compacted(text json.RawMessage) []byte {
	var compact bytes.Buffer
	if err := json.Compact(&compact, text); err != nil {
		panic(fmt.Sprintf("data: compact what was parsed: %v", err)) // cannot be
	}
	return compact.Bytes()
}

// NewCategory converts a saved category to the API's form.
func NewCategory(c *client.Category) Category {
	return Category{ID: c.ID, Name: c.Name, Filters: c.Filters, CreatedAt: api.Time(c.CreatedAt),
		UpdatedAt: api.Time(c.UpdatedAt)}
}

type categoriesRequest struct {
	ID ids.ID `path:"id"`
}

// categories is GET /api/scraper/data/group/{id}/categories.
func (r Resource) categories() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID:     "svc_list_categories",
		Routes: operation.Routes("GET /api/scraper/data/group/{id}/categories"), Group: group,
		Summary: "Lists the categories of a group, by name",
		Access:  auth.Read, Agents: operation.Reads,
		Rate: limits.Read, Errors: []fault.Code{fault.NotFound},
	}, func(_ context.Context, from *operation.Caller, in *categoriesRequest) ([]Category, error) {
		if _, err := ownership.ReadableGroup(from.View, from.Customer, in.ID, "id"); err != nil {
			return nil, err
		}
		list := []Category{}
		for _, c := range from.View.Categories(in.ID) {
			list = append(list, NewCategory(c))
		}
		return list, nil
	})
}

type putCategoryRequest struct {
	ID   ids.ID   `path:"id"`
	Body Category `body:"json"`
}

// putCategory is PUT /api/scraper/data/group/{id}/category.
func (r Resource) putCategory() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID:     "svc_put_category",
		Routes: operation.Routes("PUT /api/scraper/data/group/{id}/category"), Group: group,
		Summary: "Saves a filter of a group's rows under a name",
		Description: "Reads and downloads of the group take it in categories. An existing " +
			"category of that name gets the new filter, and keeps its id. A group has at most " +
			"100 categories, a customer's groups together 1,000.",
		Access: auth.Write, Agents: operation.Adds,
		Feature: plans.GroupCustomCategories, Rate: limits.General,
		Idempotency: operation.Required,
		Errors: []fault.Code{fault.NotFound, fault.InvalidFilter, fault.LimitReached,
			fault.PlanLimitReached},
	}, func(ctx context.Context, from *operation.Caller, in *putCategoryRequest) (Category,
		error) {
		saved, err := client.Do(ctx, r.Client, client.PutCategory{ID: r.IDs.New(),
			Customer: from.Customer, Group: in.ID, Name: in.Body.Name,
			Filters: compacted(in.Body.Filters), Cap: r.Plans.CapOf(from.View, from.Customer,
				plans.GroupCustomCategoriesLimit)}, from.Call)
		if err != nil {
			return Category{}, err
		}
		return NewCategory(&saved), nil
	})
}

// categoryTarget is the target of both calls of a deletion.
type categoryTarget struct {
	ID         ids.ID `path:"id"`
	CategoryID ids.ID `path:"categoryId"`
}

func (in *categoryTarget) deletion(from *operation.Caller) client.Deletion {
	return client.Deletion{Customer: from.Customer, Operation: client.OpDeleteCategory,
		Target: in.CategoryID, Query: in.ID.String()}
}

// previewDeleteCategory is POST …/category/{categoryId}/preview-delete.
func (r Resource) previewDeleteCategory() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID: "svc_preview_delete_category",
		Routes: operation.Routes("POST /api/scraper/data/group/{id}/category/{categoryId}" +
			"/preview-delete"),
		Group:       group,
		Summary:     "Shows what deleting a category would do",
		Description: api.PreviewDescription,
		Access:      auth.Write, Agents: operation.Adds,
		Rate: limits.General, Errors: []fault.Code{fault.NotFound},
	}, func(ctx context.Context, from *operation.Caller,
		in *categoryTarget) (api.DeletionPreview, error) {
		return api.PreviewDelete(ctx, r.Client, in.deletion(from),
			func(*client.Preview) []string {
				return []string{"Reads that name the category are refused. Rows stay."}
			})
	})
}

type deleteCategoryRequest struct {
	categoryTarget
	api.PreviewToken
}

// deleteCategory is DELETE …/category/{categoryId}.
func (r Resource) deleteCategory() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID: client.OpDeleteCategory,
		Routes: operation.Routes(
			"DELETE /api/scraper/data/group/{id}/category/{categoryId}"), Group: group,
		Summary:     "Deletes a category after a preview",
		ToAgents:    api.CommitToAgents + " Rows stay.",
		Description: api.CommitDescription + " Rows stay.",
		Access:      auth.Write, Agents: operation.Destroys,
		Rate: limits.General, Idempotency: operation.Required,
		Errors: append([]fault.Code{fault.NotFound}, api.CommitErrors()...),
	}, func(ctx context.Context, from *operation.Caller,
		in *deleteCategoryRequest) (operation.None, error) {
		_, err := client.Do(ctx, r.Client, client.DeleteCategory{Deletion: in.deletion(from),
			Token: in.Text()}, from.Call)
		return operation.None{}, err
	})
}

// where is the filter of a read: rows in any of the named categories that also match the filter.
func where(named []*client.Category, text string) (filter.Node, error) {
	also, err := parseFilter(text)
	if err != nil || len(named) == 0 {
		return also, err
	}
	var anyOf []filter.Node
	for _, category := range named {
		node, err := filter.Parse(category.Filters)
		if err != nil {
			return nil, fmt.Errorf("category %s: %w", category.ID, err)
		}
		anyOf = append(anyOf, node)
	}
	return filter.Join(anyOf, also)
}

// namedCategories finds a group's categories by id or name, each once. A text that is neither is a
// list of them.
func namedCategories(v *client.View, group ids.ID, texts []string) ([]*client.Category, error) {
	var named []*client.Category
	add := func(name string) bool {
		found := categoryCalled(v, group, name)
		if found != nil && !slices.Contains(named, found) {
			named = append(named, found)
		}
		return found != nil
	}
	for _, text := range texts {
		if text == "" || add(text) {
			continue
		}
		parts, err := api.SplitNames(text, "categories")
		if err != nil {
			return nil, err
		}
		for _, part := range parts {
			if part = strings.TrimSpace(part); part != "" && !add(part) {
				return nil, fault.Invalid(fault.NotFound, "categories",
					"there is no category %.100q in this group", part)
			}
		}
	}
	if len(named) > maxCategories {
		return nil, fault.Invalid(fault.InvalidRequest, "categories", "at most %d are allowed",
			maxCategories)
	}
	return named, nil
}

func categoryCalled(v *client.View, group ids.ID, name string) *client.Category {
	if id, err := ids.Parse(name); err == nil {
		if found := v.Category(group, id); found != nil {
			return found
		}
	}
	return v.CategoryByName(group, name)
}
