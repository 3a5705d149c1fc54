package detect

import (
	"slices"

	"shoal.dev/shoal/pkg/extract/internal/structured"
	"shoal.dev/shoal/pkg/model"
)

// maxEmbedded bounds the embedded JSON of a page that is searched for lists, in bytes.
const maxEmbedded = 4 << 20

// embedded proposes lists of data that a page embeds for its scripts. They rank after lists that
// the page shows. If it shows no list, only the embedded data has rows.
func (d *detection) embedded(blobs []structured.Blob, t topic, hasList bool,
	next *model.Pagination) {
	var found []table
	size := 0
	for _, b := range blobs {
		if size += len(b.JSON); size > maxEmbedded || !printable(b.Name) {
			continue
		}
		value, err := structured.ParseJSON(b.JSON)
		if err != nil {
			continue
		}
		for _, at := range tables(value, "$.embedded"+step(b.Name)) {
			if at.named && at.count >= minItems {
				found = append(found, at)
			}
		}
	}
	slices.SortStableFunc(found, func(a, b table) int { return b.score - a.score })
	score := 84.0
	switch {
	case t.single:
		score = 34
	case hasList:
		score = 58
	}
	for i, at := range found[:min(len(found), keptEmbedded)] {
		scraper := model.Scraper{Type: model.MultipleProducts, ItemsConfig: at.fields}
		scraper.SourceConfig.Pagination = next
		d.try("embedded", score-float64(i), scraper, nil)
	}
}

// keptEmbedded is the maximum number of proposed embedded lists.
const keptEmbedded = 2
