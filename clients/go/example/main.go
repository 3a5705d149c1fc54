// Command example does the main job by the client: example SERVER KEY URL…
// It runs a list within its estimate, waits, reads the rows by pages, and exports them. It checks
// what was paid, reads why a call was refused, and deletes everything after a preview.
package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"

	"shoal.dev/shoal/clients/go/shoal"
)

// done returns the answer of a call. If there was none, it ends the program.
func done[T any](answer T, err error) T {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	return answer
}

// must returns what an answer has with the status that was hoped for. Without it, it ends the
// program.
func must[T any](said *T, body []byte) *T {
	if said == nil {
		fmt.Fprintf(os.Stderr, "%s\n", body)
		os.Exit(1)
	}
	return said
}

func main() {
	server, key, urls := os.Args[1], os.Args[2], os.Args[3:]
	ctx, name, yes := context.Background(), "of go", true
	client := done(shoal.NewClientWithResponses(server, shoal.WithRequestEditorFn(
		func(_ context.Context, request *http.Request) error {
			request.Header.Set("Authorization", "Bearer "+key)
			return nil
		})))
	read := done(client.SvcGetWalletWithResponse(ctx))
	before := must(read.JSON200, read.Body)

	made := done(client.SvcPutGroupWithResponse(ctx,
		&shoal.SvcPutGroupParams{IdempotencyKey: rand.Text()}, shoal.GroupInput{Name: &name}))
	group := must(made.JSON200, made.Body)
	put := done(client.SvcCreateScraperWithResponse(ctx,
		&shoal.SvcCreateScraperParams{IdempotencyKey: rand.Text()}, shoal.ScraperInput{Name: name,
			GroupRef: group.Id, Type: "SINGLE_PRODUCT",
			SourceConfig: shoal.SourceConfigInput{Url: &urls[0]},
			ItemsConfig:  &[]shoal.FieldInput{{Name: "title", Selector: "h1", Kind: "TEXT"}}}))
	scraper := must(put.JSON200, put.Body)
	links := int64(len(urls))
	foreseen := done(client.SvcEstimateScraperWithResponse(ctx, scraper.Id,
		&shoal.SvcEstimateScraperParams{Links: &links}))
	estimate := must(foreseen.JSON200, foreseen.Body)
	once, list := rand.Text(), name+", list"
	ran := done(client.SvcRunScraperUrlListWithResponse(ctx,
		&shoal.SvcRunScraperUrlListParams{IdempotencyKey: &once},
		shoal.ListRunInput{GroupId: &group.Id, Name: &list, TemplateScraperId: &scraper.Id,
			Urls: &urls, MaxChargeMicros: &estimate.MaxMicros}))
	run := must(ran.JSON200, ran.Body)
	state := ""
	for state != "COMPLETED" && state != "FAILED" && state != "STOPPED" {
		time.Sleep(200 * time.Millisecond)
		listed := done(client.SvcListScraperJobsWithResponse(ctx, &shoal.SvcListScraperJobsParams{}))
		for _, job := range must(listed.JSON200, listed.Body).Content {
			if job.Id == run.JobId {
				state = string(job.State)
			}
		}
	}

	var pages []int // the rows of each
	limit := int64(5)
	for at := (shoal.SvcGetDataParams{JobId: &run.JobId, Limit: &limit}); ; {
		answer := done(client.SvcGetDataWithResponse(ctx, &at))
		rows := must(answer.JSON200, answer.Body)
		pages = append(pages, len(rows.Items))
		if !rows.HasMore {
			break
		}
		at.Cursor = rows.NextCursor
	}
	format := shoal.SvcExportDataParamsFormat("jsonl")
	exported := done(client.SvcExportDataWithResponse(ctx, &shoal.SvcExportDataParams{
		JobId: &run.JobId, Format: &format}))
	lines := bytes.Count(exported.Body, []byte("\n"))

	listed := done(client.SvcListPricesWithResponse(ctx))
	var price int64
	for _, one := range *must(listed.JSON200, listed.Body) {
		if one.RowKey == "tier:plain" {
			price = one.SellingPriceMicros
		}
	}
	read = done(client.SvcGetWalletWithResponse(ctx))
	after := must(read.JSON200, read.Body)
	paid := before.BalanceMicros - after.BalanceMicros +
		price*(before.FreeRequestsRemaining-after.FreeRequestsRemaining)

	empty := ""
	refused := done(client.SvcPutGroupWithResponse(ctx,
		&shoal.SvcPutGroupParams{IdempotencyKey: rand.Text()}, shoal.GroupInput{Name: &empty}))
	problem := must(refused.ApplicationproblemJSONDefault, refused.Body)
	shown := done(client.SvcPreviewDeleteGroupWithResponse(ctx, group.Id,
		&shoal.SvcPreviewDeleteGroupParams{WithData: &yes}))
	preview := must(shown.JSON200, shown.Body)
	deleted := done(client.SvcDeleteGroupWithResponse(ctx, group.Id, &shoal.SvcDeleteGroupParams{
		WithData: &yes, Token: &preview.Token, IdempotencyKey: rand.Text()}))
	if problem := deleted.ApplicationproblemJSONDefault; problem != nil {
		fmt.Fprintln(os.Stderr, problem.Detail)
		os.Exit(1)
	}
	fmt.Println(state, estimate.Pages, strings.Trim(fmt.Sprint(pages), "[]"), lines, paid/price,
		problem.Code, *problem.Errors[0].Field, preview.PreviewSummary.CascadeCounts["rows"])
}
