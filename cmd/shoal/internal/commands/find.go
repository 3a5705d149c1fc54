package commands

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"strings"

	"shoal.dev/shoal/cmd/shoal/internal/api"
	"shoal.dev/shoal/cmd/shoal/internal/terminal"
)

// anID matches ids. A name of that form has to be given as an id.
var anID = regexp.MustCompile(`^[0-9a-f]{24}$`)

// idsNamed is how many ids of groups with the same name are printed.
const idsNamed = 5

// findGroup finds a group by id, or by a unique name; nil if there is none.
func findGroup(ctx context.Context, client *api.Client, name string) (*api.Group, error) {
	groups, err := client.Groups(ctx)
	if err != nil {
		return nil, fmt.Errorf("groups: %w", err)
	}
	var named []*api.Group
	for i := range groups {
		if groups[i].ID == name {
			return &groups[i], nil
		}
		if groups[i].Name == name {
			named = append(named, &groups[i])
		}
	}
	switch len(named) {
	case 0:
		return nil, nil
	case 1:
		return named[0], nil
	}
	var ids []string
	for _, group := range named[:min(len(named), idsNamed)] {
		ids = append(ids, group.ID)
	}
	if more := len(named) - len(ids); more > 0 {
		ids = append(ids, fmt.Sprintf("and %d more", more))
	}
	return nil, &terminal.ExitError{Code: terminal.ExitFailed,
		Text: fmt.Sprintf("%d groups are named %q; name one by its id: %s", len(named), name,
			strings.Join(ids, ", "))}
}

// needGroup finds a group by id or name, or fails.
func needGroup(ctx context.Context, client *api.Client, name string) (*api.Group, error) {
	group, err := findGroup(ctx, client, name)
	if err == nil && group == nil {
		err = &terminal.ExitError{Code: terminal.ExitFailed, Text: fmt.Sprintf("no group %q", name)}
	}
	return group, err
}

// defaultGroup is the group for runs that name none.
const defaultGroup = "default"

// EnsureGroup finds a group by id or name, and creates it if there is none.
func EnsureGroup(ctx context.Context, client *api.Client, name string) (api.Group, error) {
	found, err := findGroup(ctx, client, name)
	if err != nil {
		return api.Group{}, err
	}
	if found != nil {
		return *found, nil
	}
	group, err := client.PutGroup(ctx, api.Group{Name: name, StartType: "MANUAL"})
	if err != nil {
		return api.Group{}, fmt.Errorf("make group %q: %w", name, err)
	}
	return group, nil
}

// findScraper finds a scraper by id or name, or fails.
func findScraper(ctx context.Context, client *api.Client, name string) (api.Answer[api.Scraper],
	error) {
	var none api.Answer[api.Scraper]
	id := ""
	if anID.MatchString(name) {
		id = name
	} else {
		named, err := client.Scrapers(ctx, api.ScraperFilter{Q: terminal.Cut(name, 200)})
		if err != nil {
			return none, fmt.Errorf("scrapers: %w", err)
		}
		for i := range named {
			if named[i].Name == name {
				id = named[i].ID // names are unique
				break
			}
		}
	}
	noSuch := &terminal.ExitError{Code: terminal.ExitFailed,
		Text: fmt.Sprintf("no scraper %q; `shoal scraper list` lists them", name)}
	if id == "" {
		return none, noSuch
	}
	scraper, err := client.Scraper(ctx, id)
	if api.IsStatus(err, http.StatusNotFound) {
		return none, noSuch
	}
	return scraper, err
}
