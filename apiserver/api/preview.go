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

// The two calls of a deletion (specification 4.10, decision 28), for every resource that is deleted
// so. A preview-delete operation answers with PreviewDelete. The DELETE proposes its own command
// with the same Deletion and the PreviewToken.

// What the descriptions of both operations say.
const (
	PreviewDescription = "Show its warnings before the deletion. The token lets that through " +
		"once, within 5 minutes, with the same parameters, unless what hangs on the target " +
		"changes meanwhile."
	CommitDescription = "Needs the token of a preview, as ?token= or X-Preview-Token; without " +
		"one, a preview of the same " +
		"deletion by the same customer that still holds."
	CommitToAgents = "Needs the token that the preview of the same deletion has answered."
)

// CommitErrors are the faults of every deletion that has a preview.
func CommitErrors() []fault.Code { return []fault.Code{fault.PreviewRequired, fault.CascadeDrift} }

// DeletionPreview is the specification's DestructivePreviewResponseDTO.
type DeletionPreview struct {
	Token          string          `json:"token" doc:"Valid for 5 minutes, once"`
	OpName         string          `json:"opName"`
	TargetEntityID ids.ID          `json:"targetEntityId"`
	PreviewSummary DeletionSummary `json:"previewSummary"`
}

// DeletionSummary is what a deletion would do.
type DeletionSummary struct {
	EntityName    string         `json:"entityName"`
	EntityType    string         `json:"entityType"`
	CascadeCounts map[string]int `json:"cascadeCounts" doc:"Things that the deletion reaches, by kind"`
	Warnings      []string       `json:"warnings" doc:"To be shown to the user before the deletion"`
}

// PreviewDelete notes a preview and makes its answer; warnings says what the user has to be told.
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

// StoppedRuns warns of the open runs that a deletion stops, and of their rows where these go, too.
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

// LostSites warns of the sites that a deletion takes along.
func LostSites(p *client.Preview) []string {
	sites := p.Cascade.Count("sites")
	if sites == 0 {
		return nil
	}
	return []string{"This deletes " + Counted(sites, "site", "sites") + " with " +
		Counted(p.Cascade.Count("siteLinks"), "link", "links") + "."}
}

// Counted is a number of things, with the word for one or for many of them.
func Counted(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// PreviewToken is the token in the request of a DELETE.
type PreviewToken struct {
	Query  string `query:"token" agent:"required" max:"64" doc:"Of the preview. X-Preview-Token does as well."`
	Header string `header:"X-Preview-Token" max:"64"`
}

// Text is the token as it was sent, "" without one.
func (t PreviewToken) Text() string { return cmp.Or(t.Query, t.Header) }
