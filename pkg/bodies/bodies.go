// Package bodies defines kept page bodies: the names of packs, what a pack holds for each unit, and
// how to read it. A pack is a blob of one run, written once. A unit's page record says which bytes
// of the pack are the unit's. The package does not decide what is kept, for how long, or who may
// read it.
package bodies

import (
	"strconv"
	"strings"
	"time"

	"shoal.dev/shoal/pkg/blobstore"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
)

// Bounds of what is kept.
const (
	// MaxPack is the most bytes of a pack.
	MaxPack = 64 << 20
	// MaxEntry is the most bytes that one unit has in a pack. More are not kept.
	MaxEntry = 32 << 20
	// maxBody is the most bytes of a body that is read.
	maxBody = 64 << 20
	day     = 24 * time.Hour
)

// Pack identifies a pack: bodies that one fetcher has kept of one run. Its key has all of this, so
// a list of packs tells who owns them and when they expire.
type Pack struct {
	Group   ids.ID
	Scraper ids.ID
	Job     ids.ID
	ID      ids.ID
	Days    uint8 // how many days it is kept, 1 to model.MaxKeepDays
}

// Key returns the pack's key in the blob store, under its customer.
func (p Pack) Key(customer string) blobstore.Key {
	return blobstore.Key{Kind: blobstore.Bodies, Owner: customer,
		ID: strings.Join([]string{p.Group.String(), p.Scraper.String(), p.Job.String(),
			p.ID.String(), strconv.Itoa(int(p.Days))}, "-")}
}

// Lifetime returns how long the pack is kept.
func (p Pack) Lifetime() time.Duration { return time.Duration(p.Days) * day }

// ParsePack parses the key of a pack; false: it is not one.
func ParsePack(key blobstore.Key) (p Pack, ok bool) {
	parts := strings.Split(key.ID, "-")
	if key.Kind.Name != blobstore.Bodies.Name || len(parts) != 5 {
		return Pack{}, false
	}
	for i, id := range []*ids.ID{&p.Group, &p.Scraper, &p.Job, &p.ID} {
		parsed, err := ids.Parse(parts[i])
		if err != nil {
			return Pack{}, false
		}
		*id = parsed
	}
	days, err := strconv.ParseUint(parts[4], 10, 8)
	if err != nil || days == 0 || days > model.MaxKeepDays {
		return Pack{}, false
	}
	p.Days = uint8(days)
	if p.Key(key.Owner).ID != key.ID {
		return Pack{}, false
	}
	return p, true
}

// Lifetime returns how long a pack is kept. It is 0 for any other blob: its kind's lifetime holds.
func Lifetime(key blobstore.Key) time.Duration {
	p, _ := ParsePack(key)
	return p.Lifetime()
}
