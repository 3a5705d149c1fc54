package rowstore

import (
	"context"
	"fmt"

	"github.com/zeebo/xxh3"

	"shoal.dev/shoal/pkg/filter"
	"shoal.dev/shoal/pkg/ids"
)

// MaxSitePart is how many links one call of PutSiteLinks or PutLinkStates takes, and one of
// SiteLinks or FindSiteLinks returns.
const MaxSitePart = 10_000

// LinkState is what the newest run of a site that came to a link made of it. It is stored: numbers
// never change.
type LinkState uint8

// The states of a site's links.
const (
	LinkPending LinkState = iota // no run has come to it
	LinkVisited
	LinkErrored // its page, or one that follows it, was not delivered
)

// Values implements the API's enums.
func (LinkState) Values() []string { return []string{"PENDING", "VISITED", "ERRORED"} }

// String is the state as customers read it.
func (s LinkState) String() string { return s.Values()[min(s, LinkErrored)] }

// SiteLink is a link of a site. Hash is LinkHash of its canonical form. State is told by reads, and
// not stored with a link.
type SiteLink struct {
	Seq              uint32
	Hash             uint64
	URL, Title, Curl string
	State            LinkState
}

// LinkHash is what the states of a site's links stand under, by the canonical form of the address
// (decision 15). So a state stays while a site is replaced.
func LinkHash(canonical string) uint64 { return xxh3.HashString(canonical) }

// LinkOutcome is what a run made of a link.
type LinkOutcome struct {
	Hash  uint64
	State LinkState
}

// LinkOrder is what the links of a site are read by. Text goes by its bytes, and what is equal in
// it by the order in which it was given. A descending order turns both around.
type LinkOrder uint8

// The orders of links.
const (
	BySeq LinkOrder = iota
	ByURL
	ByTitle
	ByCurl
)

// SiteQuery wants links of one version of a site.
type SiteQuery struct {
	Version, Site ids.ID
	From          uint32 // leaves out what has a smaller seq
	By            LinkOrder
	Descending    bool
	Offset        int
	Limit         int // 1 to MaxSitePart
}

// Check says whether a query has a page that stores read: they hold its links all at once.
func (q *SiteQuery) Check() error {
	if q.Limit < 1 || q.Limit > MaxSitePart {
		return fmt.Errorf("row store: a page of a site has 1 to %d links, not %d", MaxSitePart,
			q.Limit)
	}
	return nil
}

// Within moves a page that lies behind the last of so many links to the last one.
func (q *SiteQuery) Within(total int64) {
	if most := int64(q.Limit); int64(q.Offset) >= total {
		q.Offset = int(max(total-1, 0) / most * most)
	}
}

// Sites keeps the links of sites. The links that one call gave are a version, which is never
// changed. It can be read once it is finished; the control plane says which version is a site's.
// The states of links stand beside them, under the site and the hash of the address.
type Sites interface {
	// PutSiteLinks stores some links of a version that is not finished, at most MaxSitePart. A
	// repeat of the same changes nothing.
	PutSiteLinks(ctx context.Context, version ids.ID, links []SiteLink) error
	// FinishSite makes a version readable, of so many links, durably.
	FinishSite(ctx context.Context, version ids.ID, count uint32) error
	// SiteLinks returns the links that a query wants, in its order. A version that there is not, or
	// that is not finished, is ErrListUnknown.
	SiteLinks(ctx context.Context, q SiteQuery) ([]SiteLink, error)
	// FindSiteLinks is SiteLinks of those that a filter of url, title, curl and state lets pass. It
	// says how many do. A page behind the last is the last.
	FindSiteLinks(ctx context.Context, q SiteQuery, f filter.Node) (links []SiteLink, total int64,
		err error)
	// PutLinkStates notes what a run that started at a time (Unix microseconds) made of links, at
	// most MaxSitePart. The state of the run that started last counts, in whatever order they come.
	PutLinkStates(ctx context.Context, site ids.ID, started int64, states []LinkOutcome) error
	// AllSites are the versions that there are, finished or not, for the removal of orphans.
	AllSites(ctx context.Context) ([]ListInfo, error)
	// StatedSites are the sites of whose links there are states, for the same.
	StatedSites(ctx context.Context) ([]ids.ID, error)
	// DropSite removes a version, finished or not. Idempotent.
	DropSite(ctx context.Context, version ids.ID) error
	// DropLinkStates removes the states of a site's links. Idempotent.
	DropLinkStates(ctx context.Context, site ids.ID) error
}
