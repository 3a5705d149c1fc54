package structured

import (
	"slices"
	"strconv"
	"strings"

	"shoal.dev/shoal/pkg/extract/internal/tree"
	"shoal.dev/shoal/pkg/jsontext"
)

// maxEmbedded bounds the JSON of a page that is read as a document, in bytes.
const maxEmbedded = 8 << 20

// Embedded returns the JSON that a page embeds for its scripts as one document, or nothing. Its
// member "embedded" has a member for each of the page's blobs. A blob is named after its variable
// or script, "data" without a name. A second blob with the same name becomes NAME_2. Blobs from
// attributes with one name form an array. The total is limited to 8 MiB; later blobs are left out.
func Embedded(body []byte) ([]byte, error) {
	root, err := tree.Parse(body, tree.MaxBytes/2)
	if err != nil {
		return nil, err //nolint:wrapcheck // the caller says what was parsed
	}
	blobs := blobsOf(root)
	if len(blobs) == 0 {
		return nil, nil
	}
	out := []byte(`{"embedded":{`)
	for i, b := range NamedBlobs(blobs) {
		if len(out)+len(b.JSON) > maxEmbedded {
			break
		}
		if i > 0 {
			out = append(out, ',')
		}
		out = append(jsontext.AppendString(out, b.Name), ':')
		out = append(out, b.JSON...)
	}
	return append(out, "}}"...), nil
}

// NamedBlobs returns blobs under the names that they have in a document of Embedded. Attributes
// come last, because a script's variable keeps its name whatever elements stand before it.
func NamedBlobs(blobs []Blob) []Blob {
	blobs = slices.Clone(blobs)
	slices.SortStableFunc(blobs, func(a, b Blob) int {
		switch {
		case a.Attribute == b.Attribute:
			return 0
		case a.Attribute:
			return 1
		}
		return -1
	})
	var named []Blob
	at := map[string]int{} // indexes in named of the arrays from attributes
	times := map[string]int{}
	for _, b := range blobs {
		b.Name = strings.TrimSpace(b.Name)
		if b.Attribute {
			if _, known := at[b.Name]; known {
				continue
			}
			at[b.Name] = len(named)
			b.JSON = "" // all of that name follow below
		}
		if b.Name == "" {
			b.Name = "data"
		}
		if times[b.Name]++; times[b.Name] > 1 {
			b.Name += "_" + strconv.Itoa(times[b.Name])
		}
		named = append(named, b)
	}
	arrays := make([]strings.Builder, len(named))
	for _, b := range blobs {
		if i, known := at[strings.TrimSpace(b.Name)]; known && b.Attribute {
			arrays[i].WriteByte("[,"[min(arrays[i].Len(), 1)])
			arrays[i].WriteString(b.JSON)
		}
	}
	for _, i := range at {
		named[i].JSON = arrays[i].String() + "]"
	}
	return named
}
