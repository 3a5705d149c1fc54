package api

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
)

// A deletion takes two calls (specification 4.10, decision 28). A preview-delete operation answers
// with PreviewDelete. The DELETE then proposes its own command with the same Deletion and the
// PreviewToken. This applies to every resource that is deleted this way.

// Texts for the descriptions of both operations.
const (
	PreviewDescription = "Show the warnings to the user before the deletion. The token is " +
		"valid once, within 5 minutes, with the same parameters, unless what depends on the " +
		"target changes meanwhile."
	CommitDescription = "Needs the token of a preview, as ?token= or X-Preview-Token. Without " +
		"?token= or the header, a valid preview of the same deletion by the same customer is " +
		"enough."
	CommitToAgents = "Needs the token from the preview of the same deletion."
)

// CommitErrors are the faults of every deletion with a preview.
func CommitErrors() []fault.Code { return []fault.Code{fault.PreviewRequired, fault.CascadeDrift} }

// DeletionPreview is the specification's DestructivePreviewResponseDTO.
type DeletionPreview struct {
	Token          string          `json:"token" doc:"Valid once, for 5 minutes"`
	OpName         string          `json:"opName"`
	TargetEntityID ids.ID          `json:"targetEntityId"`
	PreviewSummary DeletionSummary `json:"previewSummary"`
}

// DeletionSummary is the effect of a deletion.
type DeletionSummary struct {
	EntityName    string         `json:"entityName"`
	EntityType    string         `json:"entityType"`
	CascadeCounts map[string]int `json:"cascadeCounts" doc:"How many things are affected, by kind"`
	Warnings      []string       `json:"warnings" doc:"Warnings to show to the user before the deletion"`
}

// PreviewDelete records a preview and makes its answer. warnings returns warnings for the user.
func PreviewDelete(ctx context.Context, c client.Proposer, d client.Deletion,
	warnings func(*client.Preview) []string) (DeletionPreview, error) {
	made, err := client.Do(ctx, c, client.PreviewDelete{Deletion: d, Token: rand.Text()},
		nil)
	if err != nil {
		return DeletionPreview{}, err
	}
	summary := DeletionSummary{EntityName: made.Cascade.Name, EntityType: made.Cascade.Type,
		CascadeCounts: map[string]int{},
		Warnings:      []string{"This cannot be undone."}}
	for _, c := range made.Cascade.Counts {
		summary.CascadeCounts[c.Name] = c.N
	}
	summary.Warnings = append(summary.Warnings, warnings(&made)...)
	return DeletionPreview{Token: made.Token, OpName: made.Operation,
		TargetEntityID: made.Target, PreviewSummary: summary}, nil
}

// StoppedRuns warns of the open runs that a deletion stops and, if withData, of their rows.
func StoppedRuns(p *client.Preview, withData bool) []string {
	open := p.Cascade.Count("openRuns")
	if open == 0 {
		return nil
	}
	said := []string{"This stops " + Counted(open, "run", "runs") + " under way."}
	if withData {
		said = append(said, "Rows that come until then are deleted, too.")
	}
	return said
}

// LostRows warns of the rows that a deletion removes.
func LostRows(p *client.Preview) string {
	return "This deletes " + Counted(p.Cascade.Count("rows"), "row", "rows") + "."
}

// LostSites warns of the sites that a deletion removes as well.
func LostSites(p *client.Preview) []string {
	sites := p.Cascade.Count("sites")
	if sites == 0 {
		return nil
	}
	return []string{"This deletes " + Counted(sites, "site", "sites") + " with " +
		Counted(p.Cascade.Count("siteLinks"), "link", "links") + "."}
}

// Counted formats a number of things with the singular or the plural noun.
func Counted(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// PreviewToken is the preview's token in a DELETE request.
type PreviewToken struct {
	Query  string `query:"token" agent:"required" max:"64" doc:"The preview's token. X-Preview-Token works as well."`
	Header string `header:"X-Preview-Token" max:"64"`
}

// Text returns the token as sent, "" if there is none.
func (t PreviewToken) Text() string { return cmp.Or(t.Query, t.Header) }
