package harvest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/zeebo/xxh3"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/address"
	"shoal.dev/shoal/pkg/filter"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/rowstore"
)

// Bounds of a batch.
const (
	batchRows  = 1_000
	batchBytes = 512 << 10
)

// Members of a row. Those that begin with _ are not shown.
const (
	MemberURL        = "url"
	MemberImage      = "image"
	MemberImageTitle = "imageTitle"
	MemberLastSeen   = "lastSeen"
	// MemberPlace is the address without its scheme and www.
	MemberPlace = "_place"
	// MemberSlashes is how many slashes the address has.
	MemberSlashes = "_slashes"
)

// Store is what a harvest needs of the row store.
type Store interface {
	PutBatch(ctx context.Context, batch rowstore.Batch) (stands ids.ID, err error)
	Batches(ctx context.Context, harvest ids.ID, after int64, most int) (docs []json.RawMessage,
		last int64, err error)
}

// errBehind stops an owner: another one is ahead, or the results were wiped.
var errBehind = errors.New("harvest: another owner is further")

// Entries matches the rows of a harvest that are addresses.
func Entries() filter.Node {
	return filter.Compare{Field: MemberURL, Op: filter.Exists,
		Values: []filter.Value{{Kind: filter.Bool, Bool: true}}}
}

// row is a row of the journal: an address, a sitemap to read, a sitemap read, or the end.
type row struct {
	URL        string  `json:"url,omitempty"`
	Image      *string `json:"image,omitempty"`
	ImageTitle *string `json:"imageTitle,omitempty"`
	LastSeen   string  `json:"lastSeen,omitempty"`
	Place      string  `json:"_place,omitempty"`
	Slashes    int     `json:"_slashes,omitempty"`

	File *file  `json:"_file,omitempty"`
	Read string `json:"_read,omitempty"` // address of a sitemap
	As   result `json:"_as,omitempty"`   // the result of reading it

	Ended bool `json:"_ended,omitempty"` // no row follows
}

// file is a sitemap.
type file struct {
	URL    string `json:"url"` // canonical
	Level  int    `json:"level"`
	Parent string `json:"parent,omitempty"` // the sitemap that names it
	// Guessed says that nothing names it: it was looked for at a usual place.
	Guessed bool `json:"guessed,omitempty"`
	result  result
}

// result is the result of reading a sitemap.
type result string

const (
	unread      result = ""
	read        result = "READ"
	missing     result = "MISSING"     // it does not exist, or is forbidden
	malformed   result = "MALFORMED"   // it can be read only in part
	unreachable result = "UNREACHABLE" // it may be reachable another time
)

// journal is all that a harvest knows, and what it will write next.
type journal struct {
	*Config
	harvest *client.Harvest
	next    uint32                    // number of the next batch
	seen    map[xxh3.Uint128]struct{} // addresses
	count   uint32                    // number of addresses
	files   []file
	known   map[string]int // index in files, by address
	ended   bool           // nothing follows

	rows [][]byte
	size int
}

// openJournal reads the journal of a harvest.
func openJournal(ctx context.Context, config *Config, h *client.Harvest) (*journal, error) {
	j := &journal{Config: config, harvest: h, seen: map[xxh3.Uint128]struct{}{},
		known: map[string]int{}}
	for after := int64(0); ; {
		docs, last, err := config.Store.Batches(ctx, h.ID, after, batchRows)
		if err != nil || len(docs) == 0 {
			return j, err
		}
		for _, doc := range docs {
			var known row
			if err := json.Unmarshal(doc, &known); err != nil {
				return nil, fmt.Errorf("row of a harvest: %w", err)
			}
			j.note(&known)
		}
		after, j.next = last, rowstore.BatchAt(last)+1
	}
}

// note adds a row to what is known.
func (j *journal) note(r *row) {
	switch {
	case r.URL != "":
		j.seen[xxh3.HashString128(r.URL)] = struct{}{}
		j.count++
	case r.File != nil:
		j.known[r.File.URL] = len(j.files)
		j.files = append(j.files, *r.File)
	case r.Ended:
		j.ended = true
	case r.Read != "":
		if at, ok := j.known[r.Read]; ok {
			j.files[at].result = r.As
		}
	}
}

// unread is the next sitemap to read, nil if there is none.
func (j *journal) unread() *file {
	for i := range j.files {
		if j.files[i].result == unread {
			return &j.files[i]
		}
	}
	return nil
}

// add notes a row and queues it for the next batch. It writes the batch when that is full, and
// returns the error of that.
func (j *journal) add(ctx context.Context, r *row) error {
	text, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("row of a harvest: %w", err)
	}
	j.note(r)
	j.rows, j.size = append(j.rows, text), j.size+len(text)
	if len(j.rows) < batchRows && j.size < batchBytes {
		return nil
	}
	return j.write(ctx)
}

// addURL adds an address, in canonical form, unless it is known or there are enough.
func (j *journal) addURL(ctx context.Context, url, image, title string) error {
	if _, known := j.seen[xxh3.HashString128(url)]; known || j.count >= j.harvest.Cap {
		return nil
	}
	r := &row{URL: url, LastSeen: j.Clock.Now().UTC().Format(TimeLayout), Place: Place(url),
		Slashes: strings.Count(url, "/")}
	if image != "" {
		r.Image = &image
	}
	if title != "" {
		r.ImageTitle = &title
	}
	return j.add(ctx, r)
}

// TimeLayout is the format of an address's time. Its texts sort by time.
const TimeLayout = "2006-01-02T15:04:05.000Z"

// Place is a canonical address without its scheme and www. Addresses under one path share a prefix.
func Place(url string) string {
	_, rest, _ := strings.Cut(url, "://")
	return strings.TrimPrefix(rest, "www.")
}

// addFile adds a sitemap, unless it is known or there are enough.
func (j *journal) addFile(ctx context.Context, f file) error {
	if _, known := j.known[f.URL]; known || len(j.files) >= maxFiles {
		return nil
	}
	return j.add(ctx, &row{File: &f})
}

// isFull says whether there are as many addresses as requested.
func (j *journal) isFull() bool { return j.count >= j.harvest.Cap }

// write writes a batch. It returns errBehind or an error of the store, after which the batch may or
// may not be written.
func (j *journal) write(ctx context.Context) error {
	if len(j.rows) == 0 {
		return nil
	}
	j.Point("work.harvest.before_batch")
	batch := rowstore.Batch{Harvest: j.harvest.ID, Number: j.next, Fetch: j.IDs.New(), Rows: j.rows}
	stands, err := j.Store.PutBatch(ctx, batch)
	if err != nil {
		return err
	}
	j.Point("work.harvest.after_batch")
	if stands != batch.Fetch {
		return errBehind
	}
	j.next, j.rows, j.size = j.next+1, nil, 0
	return nil
}

// siteOf is the host of a canonical address, with its port and without www.
func siteOf(url string) string { return strings.TrimPrefix(address.AuthorityOf(url), "www.") }
