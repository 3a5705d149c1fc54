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
	// MemberPlace is the address without its scheme and without www.
	MemberPlace = "_place"
	// MemberSlashes is how many slashes the address has.
	MemberSlashes = "_slashes"
)

// Store is what a harvest asks of the row store.
type Store interface {
	PutBatch(ctx context.Context, batch rowstore.Batch) (stands ids.ID, err error)
	Batches(ctx context.Context, harvest ids.ID, after int64, most int) (docs []json.RawMessage,
		last int64, err error)
}

// errBehind keeps an owner from going on: another one has, or what it found was wiped.
var errBehind = errors.New("harvest: another owner is further")

// Entries lets addresses pass, of all rows of a harvest.
func Entries() filter.Node {
	return filter.Compare{Field: MemberURL, Op: filter.Exists,
		Values: []filter.Value{{Kind: filter.Bool, Bool: true}}}
}

// row is a row of the journal: an address, a sitemap that is to be read, one that was, or the end.
type row struct {
	URL        string  `json:"url,omitempty"`
	Image      *string `json:"image,omitempty"`
	ImageTitle *string `json:"imageTitle,omitempty"`
	LastSeen   string  `json:"lastSeen,omitempty"`
	Place      string  `json:"_place,omitempty"`
	Slashes    int     `json:"_slashes,omitempty"`

	File *file  `json:"_file,omitempty"`
	Read string `json:"_read,omitempty"` // address of a sitemap
	As   result `json:"_as,omitempty"`   // what became of it

	Ended bool `json:"_ended,omitempty"` // nothing comes behind it
}

// file is a sitemap.
type file struct {
	URL    string `json:"url"` // canonical
	Level  int    `json:"level"`
	Parent string `json:"parent,omitempty"` // the sitemap that names it
	// Guessed says that nobody names it: it is looked for where sitemaps are.
	Guessed bool `json:"guessed,omitempty"`
	result  result
}

// result is what became of a sitemap.
type result string

const (
	unread      result = ""
	read        result = "READ"
	missing     result = "MISSING"     // it is not there, or not for us
	malformed   result = "MALFORMED"   // it can be read up to some place
	unreachable result = "UNREACHABLE" // it may be there another time
)

// journal is all that a harvest knows, and what it is about to write.
type journal struct {
	*Config
	harvest *client.Harvest
	next    uint32                    // number of the next batch
	seen    map[xxh3.Uint128]struct{} // addresses
	count   uint32                    // of them
	files   []file
	known   map[string]int // files by address
	ended   bool           // nothing more comes

	rows [][]byte
	size int
}

// openJournal reads what a harvest knows.
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

// note has a row known.
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

// unread is the next sitemap to be read; nil: there is none.
func (j *journal) unread() *file {
	for i := range j.files {
		if j.files[i].result == unread {
			return &j.files[i]
		}
	}
	return nil
}

// add has a row known and written, at the latest with the next batch. It is nil for room that is
// left in the batch, or the error of writing it.
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

// addURL takes an address, by its canonical form, unless it is known or there are enough.
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

// TimeLayout is how the time of an address is written: all texts of it are in the order of time.
const TimeLayout = "2006-01-02T15:04:05.000Z"

// Place is a canonical address without its scheme and without www, so that what is under a path
// begins alike.
func Place(url string) string {
	_, rest, _ := strings.Cut(url, "://")
	return strings.TrimPrefix(rest, "www.")
}

// addFile takes a sitemap, unless it is known or there are enough.
func (j *journal) addFile(ctx context.Context, f file) error {
	if _, known := j.known[f.URL]; known || len(j.files) >= maxFiles {
		return nil
	}
	return j.add(ctx, &row{File: &f})
}

// isFull says whether there are as many addresses as were asked for.
func (j *journal) isFull() bool { return j.count >= j.harvest.Cap }

// write writes a batch. Its errors: errBehind, and those of the store, after which nobody knows
// whether it is written.
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
