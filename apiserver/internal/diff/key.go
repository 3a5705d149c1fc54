package diff

import (
	"context"
	"slices"
	"strings"

	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/rowstore"
)

// keyNames are names of members by which sites and shops identify things, the most reliable first,
// in lower case without punctuation.
var keyNames = []string{"sku", "gtin", "ean", "gtin13", "gtin14", "upc", "isbn", "asin", "mpn",
	"productid", "itemid", "articleid", "articlenumber", "adid", "listingid", "jobid", "id",
	"producturl", "itemurl", "url", "link", "href", "detailurl"}

// LikelyKey is the member that identifies rows best, by the first rows of both runs. It has a known
// name and a different value in each row. It is "" if there is none, or if each page has one row,
// whose address is enough.
func (r Runs) LikelyKey(ctx context.Context) (string, error) {
	older, err := r.sample(ctx, r.From)
	if err != nil || older.single {
		return "", err
	}
	newer, err := r.sample(ctx, r.To)
	if err != nil {
		return "", err
	}
	for _, name := range keyNames {
		for _, member := range older.members {
			if plainName(member) == name && slices.Contains(newer.members, member) {
				return member, nil
			}
		}
	}
	return "", nil
}

// sample is what the first rows of a run say about keys.
type sample struct {
	single  bool     // each page has one row
	members []string // with a different value in each row, in the first row's order
}

func (r Runs) sample(ctx context.Context, scope rowstore.Scope) (sample, error) {
	if r.Upto == 0 {
		return sample{single: true}, nil
	}
	b, _, err := r.read(ctx, scope, 0)
	if err != nil {
		return sample{}, err
	}
	found, values := sample{single: true}, map[string]map[string]struct{}{}
	for _, doc := range b.docs {
		url := false
		for m := rowstore.MembersOf(doc); m.Next(); {
			switch {
			case m.Key == memberURL:
				url = true
			case m.Key == memberRowID:
				text, _ := rowstore.TextOf(m.Value)
				var id model.RowID
				found.single = found.single && id.UnmarshalText([]byte(text)) == nil &&
					id.Place == 0
			case !isKeyValue(m.Value) || !slices.Contains(keyNames, plainName(m.Key)):
			case values[m.Key] == nil:
				values[m.Key] = map[string]struct{}{m.Value: {}}
				found.members = append(found.members, m.Key)
			default:
				values[m.Key][m.Value] = struct{}{}
			}
		}
		found.single = found.single && url
	}
	found.members = slices.DeleteFunc(found.members,
		func(member string) bool { return len(values[member]) < len(b.docs) })
	return found, nil
}

// isKeyValue says whether a value may identify a row: a text that is not empty, or a number.
func isKeyValue(value string) bool {
	return value != `""` && !strings.ContainsAny(value[:1], "{[tfn")
}

// plainName is a name in the form of keyNames.
func plainName(name string) string {
	return strings.Map(func(r rune) rune {
		switch r {
		case '_', '-', ' ', '.':
			return -1
		}
		return r
	}, strings.ToLower(name))
}
