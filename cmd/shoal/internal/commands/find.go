package commands

import (
	"context"
	"fmt"
	"net/http"
	"regexp"

	"shoal.dev/shoal/cmd/shoal/internal/api"
	"shoal.dev/shoal/cmd/shoal/internal/terminal"
)

// anID is what ids look like. A name of that form has to be given as an id.
var anID = regexp.MustCompile(`^[0-9a-f]{24}$`)

// findGroup finds a group by id or name; nil when there is none.
func findGroup(ctx context.Context, client *api.Client, name string) (*api.Group, error) {
	groups, err := client.Groups(ctx)
	if err != nil {
		return nil, fmt.Errorf("groups: %w", err)
	}
	for i := range groups {
		if groups[i].ID == name || groups[i].Name == name {
			return &groups[i], nil
		}
	}
	return nil, nil
}

// needGroup finds a group by id or name, or fails.
func needGroup(ctx context.Context, client *api.Client, name string) (*api.Group, error) {
	group, err := findGroup(ctx, client, name)
	if err == nil && group == nil {
		err = &terminal.ExitError{Code: terminal.ExitFailed, Text: fmt.Sprintf("no group %q", name)}
	}
	return group, err
}

// EnsureGroup finds a group by id or name and makes it when there is none.
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
