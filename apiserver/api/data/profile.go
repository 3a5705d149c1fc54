package data

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"time"

	"shoal.dev/shoal/apiserver/internal/auth"
	"shoal.dev/shoal/apiserver/internal/export"
	"shoal.dev/shoal/apiserver/internal/limits"
	"shoal.dev/shoal/apiserver/internal/operation"
	"shoal.dev/shoal/apiserver/internal/ownership"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/profile"
	"shoal.dev/shoal/pkg/rowstore"
)

// Records reads the page records of runs from a row store.
type Records = client.Recorded

const (
	// The first exampleRows rows are searched for examples. A field gets up to maxExamples of up to
	// maxExampleBytes bytes.
	exampleRows     = 100
	maxExamples     = 3
	maxExampleBytes = 200
)

// RunProfile is a profile of a run's rows, field by field.
type RunProfile struct {
	JobID      ids.ID         `json:"jobId"`
	ScraperID  ids.ID         `json:"scraperId"`
	Rows       uint64         `json:"rows"`
	Fields     []FieldProfile `json:"fields" doc:"In the order in which rows have them, without the server's fields, which begin with _"`
	MoreFields bool           `json:"moreFields" doc:"There are more than 512 fields, or names of more than 256 bytes"`
}

// FieldProfile is the profile of one field of a run's rows.
type FieldProfile struct {
	Name          string            `json:"name" scraped:"exampleUrl"`
	Filled        uint64            `json:"filled" doc:"Rows with a value; null is not a value"`
	FillRate      float64           `json:"fillRate" doc:"Share of all rows that have a value, 0 to 1"`
	Types         map[string]uint64 `json:"types" keys:"enum=text,numericText,number,boolean,object,array" doc:"How many values have each type. A numericText is a text that is a number."`
	Min           *float64          `json:"min" doc:"The smallest number, numeric texts included; null if there is none"`
	Max           *float64          `json:"max" doc:"The greatest number, numeric texts included; null if there is none"`
	Mean          *float64          `json:"mean" doc:"Mean of the numbers, numeric texts included; null if there is none"`
	MeanLength    *float64          `json:"meanLength" doc:"Mean length of the texts, in bytes; null if there is none"`
	Histogram     []NumberBucket    `json:"histogram" doc:"Distribution of the numbers: up to 32 buckets in ascending order, none empty. No buckets if there are no numbers, or if an earlier version of the program stored pages"`
	Distinct      uint64            `json:"distinct" doc:"How many different values there are"`
	DistinctExact bool              `json:"distinctExact" doc:"False: distinct is an estimate, for runs of many pages nearly always within 10%"`
	Examples      []any             `json:"examples" scraped:"exampleUrl" doc:"Up to 3 different short values of the first 100 rows"`
	ExampleURL    *string           `json:"exampleUrl" doc:"Address of the page of the first example; null without one"`
}

// NumberBucket counts the numbers in one interval.
type NumberBucket struct {
	From  float64 `json:"from" doc:"Lower bound; included unless it is negative"`
	To    float64 `json:"to" doc:"Upper bound; included if it is not positive, or if it equals from"`
	Count uint64  `json:"count"`
}

type profileRequest struct {
	JobID ids.ID `query:"jobId" required:"true" doc:"The run; it may still be going on, unless its rows are hidden until it ends"`
}

// profile is GET /api/scraper/data/profile.
func (r Resource) profile() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID: "svc_profile_run", Routes: operation.Routes("GET /api/scraper/data/profile"),
		Group: group, Summary: "Describes the fields of a run's rows",
		Description: "For each field it returns how many rows have a value, and of which " +
			"types. It also returns the smallest and greatest number, about how many different " +
			"values there are, and examples. The sums are stored with each page, so the answer " +
			"is fast even for long runs.",
		Access: auth.Read, Agents: operation.Reads, Rate: limits.Read, Timeout: 5 * time.Minute,
		Long:   true,
		Errors: []fault.Code{fault.JobNotFound, fault.JobNotEnded, fault.RowsGone},
	}, func(ctx context.Context, from *operation.Caller, in *profileRequest) (RunProfile, error) {
		job, err := ownership.ReadableJob(ctx, r.History, from.View, from.Customer, in.JobID,
			"jobId")
		if err != nil {
			return RunProfile{}, err
		}
		if !job.Closed && slices.Contains(client.Hidden(from.View, job.Group), job.ID) {
			return RunProfile{}, fault.Invalid(fault.JobNotEnded, "jobId",
				"its rows are shown when the run has ended")
		}
		scope := client.ShownOf(from.View, job)
		sums, err := r.sums(ctx, job, scope)
		if err != nil {
			return RunProfile{}, err
		}
		rows, _, err := r.Store.Scan(ctx, rowstore.ScanQuery{Scope: scope, Upto: math.MaxInt64,
			Limit: exampleRows, Bytes: exportBytes})
		if err != nil {
			return RunProfile{}, fmt.Errorf("rows of run %s: %w", job.ID, err)
		}
		if len(rows) == 0 && job.Items > 0 {
			return RunProfile{}, rowsGone("jobId")
		}
		answer := RunProfile{JobID: job.ID, ScraperID: job.Scraper, Fields: []FieldProfile{}}
		if len(rows) == 0 {
			return answer, nil
		}
		answer.Rows, answer.MoreFields = sums.Rows, sums.More
		for _, f := range sums.Fields {
			answer.Fields = append(answer.Fields, newFieldProfile(f, sums.Rows, rows))
		}
		return answer, nil
	})
}

// sums adds up the sums that were stored with a run's pages. If a page has none, all rows are read.
func (r Resource) sums(ctx context.Context, job *client.Job, scope rowstore.Scope) (*profile.Sums,
	error) {
	upto, err := r.Store.Horizon(ctx)
	if err != nil {
		return nil, fmt.Errorf("sums of run %s: %w", job.ID, err)
	}
	watch, err := export.StartWatch(ctx, r.Store, []rowstore.Scope{scope}, upto)
	if err != nil {
		return nil, fmt.Errorf("sums of run %s: %w", job.ID, err)
	}
	sums, err := client.StoredSums(ctx, r.Records, job.ID)
	if err != nil {
		return nil, err
	}
	if sums != nil {
		return sums, watch.Check(ctx)
	}
	sums = &profile.Sums{}
	q := rowstore.ScanQuery{Upto: upto, Bytes: exportBytes}
	for rows, err := range scanAll(ctx, r.Store, []rowstore.Scope{scope}, q, 0) {
		if err != nil {
			return nil, err
		}
		for _, row := range rows {
			sums.Add(row)
		}
	}
	return sums, watch.Check(ctx)
}

func newFieldProfile(f *profile.Field, rows uint64, examples []json.RawMessage) FieldProfile {
	made := FieldProfile{Name: f.Name, Filled: f.Filled(), Types: map[string]uint64{},
		Histogram: []NumberBucket{},
		FillRate:  float64(f.Filled()) / float64(rows)}
	made.Examples, made.ExampleURL = examplesOf(f.Name, examples)
	made.Distinct, made.DistinctExact = f.Distinct()
	for _, kind := range profile.Kinds() {
		if count := f.Kinds[kind]; count > 0 {
			made.Types[kind.String()] = count
		}
	}
	if numbers := f.Numbers(); numbers > 0 {
		made.Min, made.Max = &f.Min, &f.Max
		if mean := f.Sum / float64(numbers); !math.IsInf(mean, 0) && !math.IsNaN(mean) {
			made.Mean = &mean
		}
	}
	for _, bucket := range f.Histogram() {
		made.Histogram = append(made.Histogram, NumberBucket(bucket))
	}
	if texts := f.Kinds[profile.Text] + f.Kinds[profile.Numeric]; texts > 0 {
		mean := float64(f.Length) / float64(texts)
		made.MeanLength = &mean
	}
	return made
}

// examplesOf returns different short values of a field, and the page address of the first one.
func examplesOf(name string, rows []json.RawMessage) (examples []any, url *string) {
	examples, seen := []any{}, []string{}
	for _, row := range rows {
		value, source := "", ""
		for m := rowstore.MembersOf(row); m.Next(); {
			switch m.Key {
			case name:
				value = m.Value
			case "_sourceUrl":
				source, _ = rowstore.TextOf(m.Value)
			}
		}
		if value == "" || value == "null" || len(value) > maxExampleBytes ||
			slices.Contains(seen, value) {
			continue
		}
		if len(seen) == 0 && source != "" {
			url = &source
		}
		seen, examples = append(seen, value), append(examples, json.RawMessage(value))
		if len(seen) == maxExamples {
			break
		}
	}
	return examples, url
}
