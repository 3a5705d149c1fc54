// Command go does the main job with a generated client: go SERVER KEY URL…
package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"os"
	"time"

	"shoal.example/client/shoal"
)

// must returns a call's answer; without a success status it ends the program.
func must[T any](answer *T, status int, err error) *T {
	if err != nil || answer == nil {
		fmt.Fprintln(os.Stderr, status, err)
		os.Exit(1)
	}
	return answer
}

func main() {
	server, key, url := os.Args[1], os.Args[2], os.Args[3]
	ctx, name := context.Background(), "of go"
	client, err := shoal.NewClientWithResponses(server, shoal.WithRequestEditorFn(
		func(_ context.Context, request *http.Request) error {
			request.Header.Set("Authorization", "Bearer "+key)
			return nil
		}))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	made, err := client.SvcPutGroupWithResponse(ctx,
		&shoal.SvcPutGroupParams{IdempotencyKey: rand.Text()}, shoal.GroupInput{Name: &name})
	group := must(made.JSON200, made.StatusCode(), err)
	put, err := client.SvcCreateScraperWithResponse(ctx,
		&shoal.SvcCreateScraperParams{IdempotencyKey: rand.Text()}, shoal.ScraperInput{Name: name,
			GroupRef: group.Id, Type: "SINGLE_PRODUCT",
			SourceConfig: shoal.SourceConfigInput{Url: &url},
			ItemsConfig:  &[]shoal.FieldInput{{Name: "title", Selector: "h1", Kind: "TEXT"}}})
	scraper := must(put.JSON200, put.StatusCode(), err)
	once := rand.Text()
	ran, err := client.SvcRunScraperByPostWithResponse(ctx, scraper.Id,
		&shoal.SvcRunScraperByPostParams{IdempotencyKey: &once})
	run := must(ran.JSON200, ran.StatusCode(), err)
	state := ""
	for state != "COMPLETED" && state != "FAILED" && state != "STOPPED" {
		time.Sleep(200 * time.Millisecond)
		listed, err := client.SvcListScraperJobsWithResponse(ctx, &shoal.SvcListScraperJobsParams{})
		for _, job := range must(listed.JSON200, listed.StatusCode(), err).Content {
			if job.Id == run.JobId {
				state = string(job.State)
			}
		}
	}
	read, err := client.SvcGetDataWithResponse(ctx, &shoal.SvcGetDataParams{JobId: &run.JobId})
	rows := must(read.JSON200, read.StatusCode(), err)
	title, _ := rows.Items[0].Get("title")
	fmt.Println(state, len(rows.Items), title)
}
