// Package bodies owns what kept page bodies are. That is how a pack of them is named, what stands
// in it for each unit, and how that is read again. A pack is a blob of one run, written once. Which
// unit has which bytes of it is in the unit's page record. It does not decide what is kept, for how
// long, or who may read it.
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
	// maxBody bounds a body that is read, in bytes.
	maxBody = 64 << 20
	day     = 24 * time.Hour
)

// Pack names a pack: bodies that one fetcher has kept of one run. All of it is in its key, so that
// whoever lists packs knows whose they are and when they go.
type Pack struct {
	Group   ids.ID
	Scraper ids.ID
	Job     ids.ID
	ID      ids.ID
	Days    uint8 // for how many it is kept, 1 to model.MaxKeepDays
}

// Key is the pack's place in the blob store, among those of its customer.
func (p Pack) Key(customer string) blobstore.Key {
	return blobstore.Key{Kind: blobstore.Bodies, Owner: customer,
		ID: strings.Join([]string{p.Group.String(), p.Scraper.String(), p.Job.String(),
			p.ID.String(), strconv.Itoa(int(p.Days))}, "-")}
}

// Lifetime is for how long the pack is kept.
func (p Pack) Lifetime() time.Duration { return time.Duration(p.Days) * day }

// ParsePack reads the key of a pack; false: it is none.
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

// Lifetime is for how long a blob of the kind is kept; 0, for what is no pack: as its kind says.
func Lifetime(key blobstore.Key) time.Duration {
	p, _ := ParsePack(key)
	return p.Lifetime()
}
