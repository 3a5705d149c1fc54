package admin

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"shoal.dev/shoal/apiserver/api"
	"shoal.dev/shoal/apiserver/internal/auth"
	"shoal.dev/shoal/apiserver/internal/limits"
	"shoal.dev/shoal/apiserver/internal/operation"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/rowstore"
)

// AuditTrailEntry is an entry of the audit trail.
type AuditTrailEntry struct {
	Number            uint64             `json:"number" doc:"Counts from 1, without gaps"`
	At                api.Time           `json:"at"`
	Action            string             `json:"action" doc:"Id of the operation called, or the name of another kind of event"`
	Actor             AuditActor         `json:"actor"`
	CustomerUniqueRef string             `json:"customerUniqueRef" doc:"The customer concerned; empty if none"`
	Changes           []AuditTrailChange `json:"changes"`
	MoreChanges       uint32             `json:"moreChanges" doc:"How many more changes are not listed, at least"`
	Count             uint32             `json:"count" doc:"For failed sign-ins: how many there were in one minute"`
	FailedFrom        api.Time           `json:"failedFrom" doc:"For failed sign-ins: when that minute began"`
	LeftBehind        *AuditTrailMark    `json:"leftBehind" doc:"For a restore: where the audit trail of the replaced state ended"`
	Generation        ids.ID             `json:"generation" doc:"Generation of the state; each restore begins a new one"`
	Index             uint64             `json:"index" doc:"Raft index of the command"`
	Hash              string             `json:"hash" doc:"SHA-256 of the entry"`
	PreviousHash      string             `json:"previousHash" doc:"SHA-256 of the previous entry; zeros for the first"`
}

// AuditActor is who caused an entry. It is empty for actions of the cluster itself.
type AuditActor struct {
	Subject           string  `json:"subject" doc:"Subject of the sign-in"`
	KeyID             *ids.ID `json:"keyId" doc:"Id of the API key; null for a sign-in"`
	Admin             bool    `json:"admin"`
	CustomerUniqueRef string  `json:"customerUniqueRef" doc:"The customer for whom the call was made, also when an admin acts for it"`
	Operation         string  `json:"operation" doc:"Id of the operation called"`
	Address           string  `json:"address" doc:"The client's address"`
	CorrelationID     string  `json:"correlationId"`
}

// AuditTrailChange is a record before and after.
type AuditTrailChange struct {
	Record string          `json:"record" doc:"Kind and key"`
	Before json.RawMessage `json:"before" doc:"Null: there was none, or it is not disclosed"`
	After  json.RawMessage `json:"after" doc:"Null: there is none, or it is not disclosed"`
}

// AuditTrailMark identifies an entry.
type AuditTrailMark struct {
	Generation ids.ID `json:"generation"`
	Number     uint64 `json:"number"`
	Hash       string `json:"hash"`
}

func newAuditEntry(r client.AuditRecord) AuditTrailEntry {
	e := AuditTrailEntry{Number: r.Number, At: api.Time(r.At), Action: r.Action,
		Actor: AuditActor{Subject: r.Actor.Subject, Admin: r.Actor.Admin,
			CustomerUniqueRef: r.Actor.Customer, Operation: r.Actor.Operation,
			Address: r.Actor.Address, CorrelationID: r.Actor.Correlation},
		CustomerUniqueRef: r.Customer, Changes: []AuditTrailChange{}, MoreChanges: r.More,
		Count: r.Count, FailedFrom: api.Time(r.FailedFrom),
		Generation: r.Generation, Index: r.Index,
		Hash: hex.EncodeToString(r.Hash[:]), PreviousHash: hex.EncodeToString(r.Before[:])}
	if !r.Actor.Key.IsZero() {
		e.Actor.KeyID = &r.Actor.Key
	}
	for _, c := range r.Changes {
		e.Changes = append(e.Changes, AuditTrailChange{Record: c.Table + " " + c.Record,
			Before: orNull(c.Before), After: orNull(c.After)})
	}
	if left := r.Restored; left != nil {
		e.LeftBehind = &AuditTrailMark{Generation: left.Generation, Number: left.Number,
			Hash: hex.EncodeToString(left.Hash[:])}
	}
	return e
}

func orNull(text string) json.RawMessage {
	if text == "" {
		return json.RawMessage("null")
	}
	return json.RawMessage(text)
}

type auditRequest struct {
	Actor    string   `query:"actor" max:"128" doc:"Subject of a sign-in, or id of an API key"`
	Customer string   `query:"customer" max:"128" doc:"customerUniqueRef of the customer concerned"`
	From     api.Time `query:"from" doc:"At this time or later"`
	To       api.Time `query:"to" doc:"Before this time"`
	Order    string   `query:"order" default:"newest" enum:"newest,oldest" doc:"Which entries come first"`
	Limit    int      `query:"limit" default:"100" min:"1" clamp:"1000"`
	Cursor   string   `query:"cursor" max:"1024" doc:"nextCursor of the previous page"`
	Format   string   `query:"format" default:"json" enum:"json,csv,jsonl" doc:"json returns one page; csv and jsonl return everything that follows, and ignore limit"`
}

// Validate implements operation.Validator.
func (in *auditRequest) Validate() fault.List { return api.CheckSpan(in.From, in.To) }

// read is what a cursor is bound to.
func (in *auditRequest) read() []string {
	return []string{"audit", in.Actor, in.Customer, strconv.FormatInt(int64(in.From), 10),
		strconv.FormatInt(int64(in.To), 10), in.Order}
}

// auditedAtOnce is how many entries are read at once.
const auditedAtOnce = 500

// auditEntryBytes bounds an entry as JSON, without its changes.
const auditEntryBytes = 2_000

// audit is GET /api/admin/audit.
func (r Resource) audit() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID: "svc_admin_audit", Routes: operation.Routes("GET /api/admin/audit"), Group: group,
		Summary: "Reads the audit trail",
		Description: "It has every write by an admin, also on behalf of a customer. It has " +
			"every key made or revoked, every block and every adjustment. Entries are never " +
			"changed or removed. Each holds the hash of the previous one.",
		Access: auth.Admin, Rate: limits.Read, Timeout: 10 * time.Minute,
		Media:  api.ExportTypes(),
		Errors: []fault.Code{fault.InvalidCursor},
	}, func(ctx context.Context, from *operation.Caller,
		in *auditRequest) (operation.Streamed[api.CursorPage[AuditTrailEntry]], error) {
		var answer operation.Streamed[api.CursorPage[AuditTrailEntry]]
		q := rowstore.AuditQuery{Actor: in.Actor, Customer: in.Customer, From: int64(in.From),
			To: int64(in.To), Descending: in.Order == "newest"}
		if in.Cursor != "" {
			if err := api.ReadCursor(in.Cursor, &q.Beyond, in.read()...); err != nil {
				return answer, err
			}
		}
		if api.Exported(in.Format) {
			return api.Export[AuditTrailEntry, api.CursorPage[AuditTrailEntry]](in.Format,
				r.trail(from.View, q)), nil
		}
		page := api.CursorPage[AuditTrailEntry]{Items: []AuditTrailEntry{}}
		q.Limit = in.Limit + 1
		found, err := r.History.Audit(ctx, from.View, q)
		if err != nil {
			return answer, fmt.Errorf("audit trail: %w", err)
		}
		page.HasMore = len(found) > in.Limit
		bytes := 0
		for i, record := range found[:min(in.Limit, len(found))] {
			page.Items = append(page.Items, newAuditEntry(record))
			bytes += auditEntryBytes
			for _, c := range record.Changes {
				bytes += len(c.Record) + len(c.Before) + len(c.After)
			}
			if bytes > api.PageBytes && i+1 < len(found) {
				page.HasMore = true
				break
			}
		}
		if page.HasMore {
			next := api.NewCursor(page.Items[len(page.Items)-1].Number, in.read()...)
			page.NextCursor = &next
		}
		answer.Whole = page
		return answer, nil
	})
}

// trail reads the trail in parts, and returns nil at the end.
func (r Resource) trail(v *client.View,
	q rowstore.AuditQuery) func(ctx context.Context) ([]AuditTrailEntry, error) {
	q.Limit = auditedAtOnce
	return func(ctx context.Context) (part []AuditTrailEntry, err error) {
		found, err := r.History.Audit(ctx, v, q)
		if err != nil {
			return nil, fmt.Errorf("audit trail: %w", err)
		}
		for _, record := range found {
			part = append(part, newAuditEntry(record))
			q.Beyond = record.Number
		}
		return part, nil
	}
}
