package model

import "shoal.dev/shoal/pkg/ids"

// Unit is a page of a run, which is fetched, stored and charged once. Seq is the start address's
// place in the run's link list, Page the page's number in the chain from there, both from 0.
type Unit struct {
	Seq  uint32 `cbor:"1,keyasint"`
	Page uint32 `cbor:"2,keyasint,omitempty"`
}

// Continuation is where a chain goes on: everything that a fetcher needs to fetch page Page as if
// it had fetched the earlier ones. Every page except its chain's last has one, so anyone with the
// chain's newest settled page can continue from there.
type Continuation struct {
	Page uint32 `cbor:"1,keyasint"` // number of the next page, 1 or more
	URL  string `cbor:"2,keyasint"` // its address
	// Seen holds the content hashes of the chain's last pages, newest last, at most MaxSeen. A page
	// with one of these hashes ends the chain (decision 14).
	Seen []uint64 `cbor:"3,keyasint,omitempty"`
	// KnownRows holds the hashes of the rows of the chain's last pages, newest last, at most
	// MaxKnownRows. A page with only such rows ends the chain (decision 14).
	KnownRows []uint64 `cbor:"4,keyasint,omitempty"`
	// Rendered says that the chain's newest page came from a browser. Later pages then need one,
	// too: without it they might look empty, and end the chain.
	Rendered bool `cbor:"5,keyasint,omitempty"`
}

// Bounds of a continuation's memory.
const (
	MaxSeen      = 16
	MaxKnownRows = 64
)

// Task is one start address of a run, on the topic `tasks`: the leader's order to the fetcher that
// holds the shard.
type Task struct {
	Job      ids.ID  `cbor:"1,keyasint"`
	Seq      uint32  `cbor:"2,keyasint"`
	Customer string  `cbor:"3,keyasint"` // owner of the run, for fair turns
	Scraper  ids.ID  `cbor:"4,keyasint"`
	Revision uint32  `cbor:"5,keyasint"` // with Scraper: the recipe
	URL      string  `cbor:"6,keyasint"` // the start address
	Tiers    TierSet `cbor:"7,keyasint"` // what the reservation allows
	// pages that may be fetched under this dispatch, 1 or more
	Budget  uint32        `cbor:"8,keyasint"`
	Attempt uint8         `cbor:"9,keyasint"` // 1, and one more after each lost dispatch
	Number  uint64        `cbor:"10,keyasint"`
	From    *Continuation `cbor:"11,keyasint,omitempty"` // nil: begin at page 0 with URL
	// Trace is the span that led here (pkg/telemetry); nil: the run is not traced.
	Trace []byte `cbor:"12,keyasint,omitempty"`
	// Limited says that a daily limit is reached: the unit is answered without a fetch.
	Limited bool `cbor:"13,keyasint,omitempty"`
	// Domain is the price row of the start address's domain, which applies to all pages of the
	// chain (Charge.At); "": none.
	Domain string `cbor:"14,keyasint,omitempty"`
}

// Outcome is how a unit ended.
type Outcome uint8

// The outcomes. Only Delivered is charged and has rows.
const (
	// Delivered: read whole, with rows (decision 16).
	Delivered Outcome = iota + 1
	// Errored: not delivered; Code says why.
	Errored
	// Empty: the page ended a pagination chain without being part of it: no row, no charge, no
	// error (decision 38).
	Empty
	// Duplicate: the run already has the page's canonical address: no rows, no charge, end of the
	// chain.
	Duplicate
	// Cancelled: the run had ended before the fetcher began. It has no page record.
	Cancelled
)

// String returns the outcome's name in metrics and traces.
func (o Outcome) String() string {
	switch o {
	case Delivered:
		return "delivered"
	case Errored:
		return "errored"
	case Empty:
		return "empty"
	case Duplicate:
		return "duplicate"
	case Cancelled:
		return "cancelled"
	}
	return "unknown"
}

// Try is one attempt at one tier.
type Try struct {
	Tier   Tier   `cbor:"1,keyasint,omitempty"`
	Code   string `cbor:"2,keyasint,omitempty"` // page code of pkg/fault, "" on success
	Status uint16 `cbor:"3,keyasint,omitempty"` // HTTP status, 0 without a response
	Millis uint32 `cbor:"4,keyasint,omitempty"`
}

// Page is one fetched page, on the topic `pages`. Its page record keeps all but the rows.
type Page struct {
	Job  ids.ID `cbor:"1,keyasint"`
	Unit Unit   `cbor:"2,keyasint"`
	// this fetch; if two fetches of one unit race, the lower id stands
	Fetch   ids.ID  `cbor:"3,keyasint"`
	Outcome Outcome `cbor:"4,keyasint"`
	Code    string  `cbor:"5,keyasint,omitempty"` // page code of pkg/fault when Errored
	Status  uint16  `cbor:"6,keyasint,omitempty"` // HTTP status of the last response, 0 without one
	URL     string  `cbor:"7,keyasint"`           // as listed, or as the pagination made it
	Final   string  `cbor:"8,keyasint,omitempty"` // after redirects, "" if that is URL
	// URLHash is the seeded hash of URL's canonical form (decision 15). It is 0 for a run without
	// pagination, whose link list already holds each address only once.
	URLHash  uint64 `cbor:"9,keyasint,omitempty"`
	PriceRow string `cbor:"10,keyasint,omitempty"` // key of the price that applies when Delivered
	Quantity uint32 `cbor:"11,keyasint,omitempty"` // how many times that price
	Tries    []Try  `cbor:"12,keyasint,omitempty"`
	Bytes    uint32 `cbor:"13,keyasint,omitempty"` // body bytes on the wire, over all tries
	// from the first request's start to the page's end
	Millis uint32 `cbor:"14,keyasint,omitempty"`
	At     int64  `cbor:"15,keyasint"` // Unix microseconds when the page was read
	// Last says that the chain ends here. Otherwise Next says where it continues, and Spent says
	// that this dispatch does not continue.
	Last  bool          `cbor:"16,keyasint,omitempty"`
	Spent bool          `cbor:"17,keyasint,omitempty"`
	Next  *Continuation `cbor:"18,keyasint,omitempty"`
	Rows  [][]byte      `cbor:"19,keyasint,omitempty"` // JSON objects, only when Delivered
	// Trace is the span that led here (pkg/telemetry); nil: the run is not traced.
	Trace []byte `cbor:"20,keyasint,omitempty"`
	// Detail says more about an Errored page than its Code, in words for its customer; "": nothing.
	Detail string `cbor:"21,keyasint,omitempty"`
	// BodyHash is the SHA-256 of the newest body returned by the page's own address, without its
	// encoding for the wire. nil: none was read completely.
	BodyHash []byte `cbor:"22,keyasint,omitempty"`
	// Kept is where the unit's bodies are kept; nil: nowhere.
	Kept *KeptBody `cbor:"23,keyasint,omitempty"`
	// Sums describe the rows field by field (pkg/profile). Whoever stores the page makes them; they
	// are not on the topic.
	Sums []byte `cbor:"-"`
}

// Refuse makes it an error without rows, which costs nothing and ends its chain.
func (p *Page) Refuse(code string) {
	p.Outcome, p.Code, p.Rows, p.PriceRow, p.Quantity = Errored, code, nil, "", 0
	p.Last, p.Spent, p.Next = true, false, nil
}

// KeptBody is where the bodies of one unit are kept: some bytes of a pack (pkg/bodies). The pack
// was durable before the page was passed on.
type KeptBody struct {
	Pack   ids.ID `cbor:"1,keyasint"`
	Offset uint32 `cbor:"2,keyasint,omitempty"`
	Length uint32 `cbor:"3,keyasint"`
	// Days is how many days the pack is kept after the page was read.
	Days uint8 `cbor:"4,keyasint"`
	// From is the fetch that kept them; nil: the page's own fetch, in its own run.
	From *KeptFrom `cbor:"5,keyasint,omitempty"`
}

// KeptFrom is the fetch that kept a body which another run reads.
type KeptFrom struct {
	Job   ids.ID `cbor:"1,keyasint"`
	Group ids.ID `cbor:"2,keyasint"` // of that run
	Fetch ids.ID `cbor:"3,keyasint"`
}

// Receipt is the proof that a unit is durably stored, on the topic `receipts`. A Cancelled one
// proves nothing: it says that the fetcher will not answer the task any further.
type Receipt struct {
	Job      ids.ID        `cbor:"1,keyasint"`
	Unit     Unit          `cbor:"2,keyasint"`
	Outcome  Outcome       `cbor:"3,keyasint"`
	PriceRow string        `cbor:"4,keyasint,omitempty"`
	Quantity uint32        `cbor:"5,keyasint,omitempty"`
	Items    uint32        `cbor:"6,keyasint,omitempty"` // rows stored
	Last     bool          `cbor:"7,keyasint,omitempty"`
	Next     *Continuation `cbor:"8,keyasint,omitempty"`
	// Trace is the span that led here (pkg/telemetry); nil: the run is not traced.
	Trace []byte `cbor:"9,keyasint,omitempty"`
}

// OpenTasks are the tasks of one run that a fetcher still holds open.
type OpenTasks struct {
	Job  ids.ID   `cbor:"1,keyasint"`
	Seqs []uint32 `cbor:"2,keyasint"` // ascending
}

// Marker finds losses. The leader sends it into `tasks`, and the fetcher passes it on behind its
// published pages. Ingest passes it on behind the receipts, and billing back to the leader.
// Dispatches sent before it that it does not list as open are lost if still out when it returns.
type Marker struct {
	// the leadership that sent it: markers of other leaderships mean nothing
	Leader uint64      `cbor:"1,keyasint"`
	Shard  uint16      `cbor:"2,keyasint"`
	Number uint64      `cbor:"3,keyasint"`           // counts up within a leadership
	Open   []OpenTasks `cbor:"4,keyasint,omitempty"` // filled in by the fetcher
	// Newest is the number of the newest dispatch sent to the shard before it, by any leader. A
	// task that comes after it without a higher number is late, and already counts as lost.
	Newest uint64 `cbor:"5,keyasint,omitempty"`
}
