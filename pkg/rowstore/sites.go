package rowstore

import (
	"context"
	"fmt"

	"github.com/zeebo/xxh3"

	"shoal.dev/shoal/pkg/filter"
	"shoal.dev/shoal/pkg/ids"
)

// MaxSitePart is the most links that one call of PutSiteLinks or PutLinkStates takes, and that one
// of SiteLinks or FindSiteLinks returns.
const MaxSitePart = 10_000

// LinkState is the result of the newest run of a site that reached a link. It is stored: numbers
// never change.
type LinkState uint8

// The states of a site's links.
const (
	LinkPending LinkState = iota // no run has reached it
	LinkVisited
	LinkErrored // its page, or a later page of its chain, was not delivered
)

// Values lists the states for the API's enums.
func (LinkState) Values() []string { return []string{"PENDING", "VISITED", "ERRORED"} }

// String returns the state as customers read it.
func (s LinkState) String() string { return s.Values()[min(s, LinkErrored)] }

// SiteLink is a link of a site. Hash is LinkHash of its canonical form. Reads fill in State, which
// is not stored with a link.
type SiteLink struct {
	Seq              uint32
	Hash             uint64
	URL, Title, Curl string
	State            LinkState
}

// LinkHash is the key of a link's state: a hash of the canonical form of its address (decision 15).
// So states survive when a site is replaced.
func LinkHash(canonical string) uint64 { return xxh3.HashString(canonical) }

// LinkOutcome is the result of a run for a link.
type LinkOutcome struct {
	Hash  uint64
	State LinkState
}

// LinkOrder is what the links of a site are sorted by. Text is compared bytewise, and ties go by
// seq. A descending order reverses both.
type LinkOrder uint8

// The orders of links.
const (
	BySeq LinkOrder = iota
	ByURL
	ByTitle
	ByCurl
)

// SiteQuery selects links of one version of a site.
type SiteQuery struct {
	Version, Site ids.ID
	From          uint32 // skips smaller seqs
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

// Within moves a page beyond the total to the last page.
func (q *SiteQuery) Within(total int64) {
	if most := int64(q.Limit); int64(q.Offset) >= total {
		q.Offset = int(max(total-1, 0) / most * most)
	}
}

// Sites keeps the links of sites. The links that one call gave are an immutable version, readable
// once it is finished. The control plane knows the current version of each site. The states of
// links are stored separately, under the site and the hash of the address.
type Sites interface {
	// PutSiteLinks stores some links of an unfinished version, at most MaxSitePart. Repeating a
	// call changes nothing.
	PutSiteLinks(ctx context.Context, version ids.ID, links []SiteLink) error
	// FinishSite durably makes a version of count links readable.
	FinishSite(ctx context.Context, version ids.ID, count uint32) error
	// SiteLinks returns the links that match a query, in its order. An unknown or unfinished
	// version is ErrListUnknown.
	SiteLinks(ctx context.Context, q SiteQuery) ([]SiteLink, error)
	// FindSiteLinks is SiteLinks for the links that pass a filter on url, title, curl and state. It
	// also returns their total. A page beyond the total becomes the last page.
	FindSiteLinks(ctx context.Context, q SiteQuery, f filter.Node) (links []SiteLink, total int64,
		err error)
	// PutLinkStates notes the results of a run that started at a time (Unix microseconds), at most
	// MaxSitePart. The state of the run that started last counts, whatever the order of calls.
	PutLinkStates(ctx context.Context, site ids.ID, started int64, states []LinkOutcome) error
	// AllSites returns all versions, finished or not, for the removal of orphans.
	AllSites(ctx context.Context) ([]ListInfo, error)
	// StatedSites returns the sites that have link states, for the removal of orphans.
	StatedSites(ctx context.Context) ([]ids.ID, error)
	// DropSite removes a version, finished or not. Idempotent.
	DropSite(ctx context.Context, version ids.ID) error
	// DropLinkStates removes the states of a site's links. Idempotent.
	DropLinkStates(ctx context.Context, site ids.ID) error
}
