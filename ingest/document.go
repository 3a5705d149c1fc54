package ingest

import (
	"time"

	"shoal.dev/shoal/pkg/jsontext"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/profile"
	"shoal.dev/shoal/pkg/rowstore"
)

// scrapedAtLayout is ISO 8601 in UTC with milliseconds.
const scrapedAtLayout = "2006-01-02T15:04:05.000Z"

// sumRows sums up the rows of a page before they are completed; sums is reused. The sums go into
// the page's record: of two pages of one unit, those of the record that stands count. The record
// has no room for the names and counts of hundreds of fields. The run is then summed up by its
// rows.
func sumRows(p *model.Page, sums *profile.Sums) {
	if len(p.Rows) == 0 {
		return
	}
	sums.Reset()
	for _, row := range p.Rows {
		sums.Add(row)
	}
	p.Sums = sums.EncodePage()
}

// completeRows completes a page's rows to documents: the extractor's object, then the server's
// keys. These are the same for all rows of the page except for the row's id.
func completeRows(p *model.Page, job rowstore.Job) {
	if len(p.Rows) == 0 {
		return
	}
	tail := serverKeys(p, job)
	size := 0
	for _, row := range p.Rows {
		size += len(row) + len(tail) + model.MaxRowIDText + len(`"}`)
	}
	id := model.RowID{Job: job.ID, Unit: p.Unit}
	docs := make([]byte, 0, size) // one allocation for all rows, since they share a lifetime
	for i, row := range p.Rows {
		start := len(docs)
		docs = append(docs, row[:len(row)-1]...)
		if len(row) > len("{}") {
			docs = append(docs, ',')
		}
		docs = append(docs, tail...)
		id.Place = uint32(i)
		docs, _ = id.AppendText(docs) // it never fails
		docs = append(docs, `"}`...)
		p.Rows[i] = docs[start:len(docs):len(docs)]
	}
}

// serverKeys is the end of a document, from the first server key up to the row's id (decision 37
// for the addresses).
func serverKeys(p *model.Page, job rowstore.Job) []byte {
	id := job.ID.String()
	tail := make([]byte, 0, 256+len(p.URL)+len(p.Final))
	if p.URL != "" { // rows of a file have no address
		tail = append(jsontext.AppendString(append(tail, `"_sourceUrl":`...), p.URL), ',')
	}
	if p.Final != "" && p.Final != p.URL {
		tail = append(jsontext.AppendString(append(tail, `"_finalUrl":`...), p.Final), ',')
	}
	tail = append(tail, `"_scrapedAt":"`...)
	tail = time.UnixMicro(p.At).UTC().AppendFormat(tail, scrapedAtLayout)
	tail = append(append(tail, `","_jobId":"`...), id...)
	tail = append(append(tail, `","_scraperJobStatusId":"`...), id...)
	tail = append(append(tail, `","_scraperId":"`...), job.Scraper.String()...)
	return append(tail, `","_rowId":"`...)
}
