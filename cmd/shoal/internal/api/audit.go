package api

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"net/url"
	"strconv"
	"time"
)

// AuditEntry is the part of an audit trail entry that the command line shows.
type AuditEntry struct {
	Number            uint64 `json:"number"`
	At                string `json:"at"`
	Action            string `json:"action"`
	CustomerUniqueRef string `json:"customerUniqueRef"`
	Count             uint32 `json:"count"`
	FailedFrom        string `json:"failedFrom"`
	MoreChanges       uint32 `json:"moreChanges"`
	Actor             struct {
		Subject string  `json:"subject"`
		KeyID   *string `json:"keyId"`
		Address string  `json:"address"`
	} `json:"actor"`
	Changes []struct {
		Record string `json:"record"`
	} `json:"changes"`
}

// AuditPage is a page of the audit trail.
type AuditPage = cursorPage[AuditEntry]

// AuditFilter narrows the trail; empty fields match everything. Order is newest or oldest, From and
// To are RFC 3339 times.
type AuditFilter struct{ Actor, Customer, From, To, Order string }

const (
	auditPath = "/api/admin/audit"
	auditTime = 10 * time.Minute // of the server
)

func (f AuditFilter) query(limit int) url.Values {
	query := url.Values{"limit": {strconv.Itoa(limit)}}
	for name, value := range map[string]string{"actor": f.Actor, "customer": f.Customer,
		"from": f.From, "to": f.To, "order": f.Order} {
		if value != "" {
			query.Set(name, value)
		}
	}
	return query
}

// Audit reads a page of the audit trail; the credential must be an administrator's.
func (c *Client) Audit(ctx context.Context, filter AuditFilter, limit int) (Answer[AuditPage],
	error) {
	var page Answer[AuditPage]
	err := c.within(auditTime).get(ctx, auditPath, filter.query(limit), &page)
	return page, err
}

// AuditTrail reads the whole trail from its beginning, each entry as the server sends it. It ends
// with the first error; the credential must be an administrator's.
func (c *Client) AuditTrail(ctx context.Context) iter.Seq2[json.RawMessage, error] {
	return func(yield func(json.RawMessage, error) bool) {
		query := AuditFilter{Order: "oldest"}.query(maxCursorPage)
		for {
			var page cursorPage[json.RawMessage]
			if err := c.within(auditTime).get(ctx, auditPath, query, &page); err != nil {
				yield(nil, err)
				return
			}
			for _, entry := range page.Items {
				if !yield(entry, nil) {
					return
				}
			}
			if page.NextCursor == "" {
				return
			}
			query.Set("cursor", page.NextCursor)
		}
	}
}

// AuditCSV streams the whole trail as csv. What a failed call has written is incomplete. The
// credential must be an administrator's.
func (c *Client) AuditCSV(ctx context.Context, to io.Writer) error {
	answer, err := c.open(ctx, auditPath, url.Values{"format": {"csv"}, "order": {"oldest"}})
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }() // read-only
	if _, err := io.CopyBuffer(to, answer.Body, make([]byte, copyBuffer)); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return fmt.Errorf("%w: the trail broke off: %w", ErrUnreachable, err)
	}
	return nil
}
