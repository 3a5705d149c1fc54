package data

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"time"

	"shoal.dev/shoal/apiserver/api"
	"shoal.dev/shoal/apiserver/internal/auth"
	"shoal.dev/shoal/apiserver/internal/limits"
	"shoal.dev/shoal/apiserver/internal/operation"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/filter"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/rowstore"
)

// RowReceipt tells where a row comes from: how its page was fetched and what that costs.
type RowReceipt struct {
	RowID      string    `json:"rowId"`
	JobID      ids.ID    `json:"jobId"`
	ScraperID  ids.ID    `json:"scraperId"`
	GroupID    ids.ID    `json:"groupId"`
	URL        string    `json:"url" doc:"Address of the page as listed or found"`
	FinalURL   *string   `json:"finalUrl" doc:"Address after redirects; null: there were none"`
	Status     uint16    `json:"status" doc:"HTTP status of the last answer"`
	ScrapedAt  api.Time  `json:"scrapedAt"`
	DurationMS uint32    `json:"durationMillis" doc:"From the first request to the end of the page"`
	Bytes      uint32    `json:"bytes" doc:"Bytes of bodies received, over all tries"`
	Rows       uint32    `json:"rows" doc:"Rows from the page, this one included. If the page's record has expired, at least so many."`
	Tier       string    `json:"tier" doc:"The tier that fetched the page: plain, render, super or render+super"`
	Tries      []RowTry  `json:"tries" doc:"Tries in order: the chain of tiers"`
	BodySHA256 *string   `json:"bodySha256" doc:"SHA-256 of the decoded body at the page's own address. Null for pages read before receipts existed."`
	Body       *KeptPage `json:"body" doc:"Null if none is kept, and for people with whom the group is shared"`
	Price      *RowPrice `json:"price" doc:"Null for people with whom the group is shared"`
}

// KeptPage tells where the body of a row's page is kept.
type KeptPage struct {
	Path  string   `json:"path" doc:"Path of the operation that returns it, svc_get_row_body"`
	Until api.Time `json:"keptUntil" doc:"When it is deleted; earlier if the customer has more than the server keeps, or the scraper is deleted"`
}

// RowTry is one attempt to fetch a page.
type RowTry struct {
	Tier       string  `json:"tier"`
	Code       *string `json:"code" doc:"What went wrong, as a code for programs; null: nothing"`
	Status     *uint16 `json:"status" doc:"HTTP status; null without an answer"`
	DurationMS uint32  `json:"durationMillis"`
}

// RowPrice is the price of a page, in micros: millionths of a euro. Its rows share it.
type RowPrice struct {
	RowKey     string `json:"rowKey" doc:"Row of the price list at the run's launch; empty: the page is free"`
	Label      string `json:"label"`
	Quantity   uint32 `json:"quantity" doc:"How many times the price is charged"`
	UnitMicros int64  `json:"unitPriceMicros" doc:"Price of one unit, in micros, millionths of a euro"`
	Micros     int64  `json:"amountMicros" doc:"Price of the page, in micros, millionths of a euro, before free requests. The run's transaction says how many pages were free or not billed."`
}

type receiptRequest struct {
	RowID string `path:"rowId" pattern:"^[A-Za-z0-9_-]{20,36}$" doc:"A row's _rowId"`
}

// receipt is GET /api/scraper/data/{rowId}/receipt.
func (r Resource) receipt() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID:     "svc_get_row_receipt",
		Routes: operation.Routes("GET /api/scraper/data/{rowId}/receipt"), Group: group,
		Summary: "Returns the receipt of a row: where it comes from",
		Description: "A row's id is its _rowId. The receipt is that of the page that the row " +
			"came from. It exists as long as the row. Added files can keep a row for more " +
			"than 90 days. Then its receipt has its ids and its time.",
		Access: auth.Read, Agents: operation.Reads,
		Rate: limits.Read, Errors: []fault.Code{fault.NotFound},
	}, func(ctx context.Context, from *operation.Caller, in *receiptRequest) (RowReceipt, error) {
		job, record, err := r.pageOf(ctx, from, in)
		if err != nil {
			return RowReceipt{}, err
		}
		answer := newReceipt(in.RowID, job, record)
		if job.Customer == from.Customer {
			answer.Price = priceOf(from.View, job, record)
			answer.Body = r.bodyOf(in.RowID, job, record)
		}
		return answer, nil
	})
}

// pageOf returns the run of a row and the record of its page. A row of a protected scraper outlives
// the record; then the row itself tells what is left.
func (r Resource) pageOf(ctx context.Context, from *operation.Caller,
	in *receiptRequest) (*client.Job, *rowstore.Record, error) {
	var id model.RowID
	if err := id.UnmarshalText([]byte(in.RowID)); err != nil {
		return nil, nil, fault.Invalid(fault.InvalidID, "rowId", "is no _rowId of a row")
	}
	kept, err := readableRun(ctx, r.History, from.View, from.Customer, id.Job, "rowId")
	if err != nil {
		if fault.CodeOf(err) == fault.JobNotFound {
			err = noRow()
		}
		return nil, nil, err
	}
	job, record, err := r.recordOf(ctx, from.View, id, kept)
	if err != nil {
		return nil, nil, fmt.Errorf("receipt of row %s: %w", in.RowID, err)
	}
	if record == nil || record.Outcome != model.Delivered || id.Place >= record.Items {
		return nil, nil, noRow()
	}
	return job, record, nil
}

// recordOf returns the run of a row whose rows a run holds, and the record of its page; nil: there
// are no such rows.
func (r Resource) recordOf(ctx context.Context, v *client.View, id model.RowID,
	holds *client.Job) (job *client.Job, record *rowstore.Record, err error) {
	if job = holds; id.Job != holds.ID {
		if job, err = r.History.Run(ctx, v, id.Job); err != nil || job == nil {
			return nil, nil, err
		}
	}
	record, err = r.Store.Record(ctx, id.Job, id.Unit)
	if err != nil {
		return nil, nil, err
	}
	q := rowstore.ScanQuery{Scope: client.ShownOf(v, holds), Upto: math.MaxInt64, Limit: 1}
	expired := record == nil && holds.ID != job.ID
	if expired {
		q.Filter = filter.Compare{Field: "_rowId", Op: filter.Eq,
			Values: []filter.Value{{Kind: filter.Text, Text: id.String()}}}
	}
	rows, _, err := r.Store.Scan(ctx, q)
	if err != nil || len(rows) == 0 {
		return nil, nil, err
	}
	if expired {
		var row struct {
			At time.Time `json:"_scrapedAt"`
		}
		if err := json.Unmarshal(rows[0], &row); err != nil {
			return nil, nil, err
		}
		record = &rowstore.Record{Unit: id.Unit, Outcome: model.Delivered, Items: id.Place + 1,
			At: row.At.UnixMicro()}
	}
	return job, record, nil
}

func noRow() error { return fault.Invalid(fault.NotFound, "rowId", "there is no such row") }

// hasRows reports whether a run still has visible rows. Page records outlive the rows, because
// charges are computed from them.
func (r Resource) hasRows(ctx context.Context, v *client.View, job *client.Job) (bool, error) {
	kept, err := addedUp(ctx, r.History, v, job)
	if err != nil {
		return false, err
	}
	rows, _, err := r.Store.Scan(ctx, rowstore.ScanQuery{Scope: client.ShownOf(v, kept),
		Upto: math.MaxInt64, Limit: 1})
	return len(rows) > 0, err
}

func newReceipt(id string, job *client.Job, record *rowstore.Record) RowReceipt {
	answer := RowReceipt{RowID: id, JobID: job.ID, ScraperID: job.Scraper, GroupID: job.Group,
		URL: record.URL, Status: record.Status, ScrapedAt: api.Time(record.At / 1000),
		DurationMS: record.Millis, Bytes: record.Bytes, Rows: record.Items, Tries: []RowTry{}}
	if record.Final != "" && record.Final != record.URL {
		answer.FinalURL = &record.Final
	}
	for _, try := range record.Tries {
		made := RowTry{Tier: try.Tier.String(), DurationMS: try.Millis}
		if try.Code != "" {
			made.Code = &try.Code
		}
		if try.Status != 0 {
			made.Status = &try.Status
		}
		answer.Tries, answer.Tier = append(answer.Tries, made), made.Tier
	}
	if len(record.BodyHash) > 0 {
		hash := hex.EncodeToString(record.BodyHash)
		answer.BodySHA256 = &hash
	}
	return answer
}

// priceOf is the price of a page in the price table of its run.
func priceOf(v *client.View, job *client.Job, record *rowstore.Record) *RowPrice {
	price := &RowPrice{RowKey: record.PriceRow, Quantity: record.Quantity}
	if table := v.Prices(job.Prices); table != nil && record.PriceRow != "" {
		if row, known := table.Rows.Row(record.PriceRow); known {
			price.Label, price.UnitMicros = row.Label, row.Micros
			price.Micros = row.Of(int64(record.Quantity))
		}
	}
	return price
}
