package ingest

import (
	"time"
	"unicode/utf8"

	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/rowstore"
)

// scrapedAtLayout is ISO 8601 in UTC with milliseconds.
const scrapedAtLayout = "2006-01-02T15:04:05.000Z"

// completeRows makes complete documents of a page's rows: the extractor's object, then the server's
// keys, which are the same for all rows of the page.
func completeRows(p *model.Page, job rowstore.Job) {
	if len(p.Rows) == 0 {
		return
	}
	tail := serverKeys(p, job)
	size := 0
	for _, row := range p.Rows {
		size += len(row) + len(tail)
	}
	docs := make([]byte, 0, size) // one allocation for all rows: they live and die together
	for i, row := range p.Rows {
		start := len(docs)
		docs = append(docs, row[:len(row)-1]...)
		if len(row) > len("{}") {
			docs = append(docs, ',')
		}
		docs = append(docs, tail...)
		p.Rows[i] = docs[start:len(docs):len(docs)]
	}
}

// serverKeys is the end of a document, from the first server key to the closing brace (decision 37
// for the addresses).
func serverKeys(p *model.Page, job rowstore.Job) []byte {
	id := job.ID.String()
	tail := make([]byte, 0, 256+len(p.URL)+len(p.Final))
	tail = appendString(append(tail, `"_sourceUrl":`...), p.URL)
	if p.Final != "" && p.Final != p.URL {
		tail = appendString(append(tail, `,"_finalUrl":`...), p.Final)
	}
	tail = append(tail, `,"_scrapedAt":"`...)
	tail = time.UnixMicro(p.At).UTC().AppendFormat(tail, scrapedAtLayout)
	tail = append(append(tail, `","_jobId":"`...), id...)
	tail = append(append(tail, `","_scraperJobStatusId":"`...), id...)
	tail = append(append(tail, `","_scraperId":"`...), job.Scraper.String()...)
	return append(tail, `"}`...)
}

const hexDigits = "0123456789abcdef"

// appendString appends s as a JSON string; bytes that are not UTF-8 become U+FFFD.
func appendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	for i := 0; i < len(s); {
		switch b := s[i]; {
		case b == '"' || b == '\\':
			dst = append(dst, '\\', b)
			i++
		case b < ' ':
			dst = append(dst, `\u00`...)
			dst = append(dst, hexDigits[b>>4], hexDigits[b&15])
			i++
		case b < utf8.RuneSelf:
			dst = append(dst, b)
			i++
		default:
			r, size := utf8.DecodeRuneInString(s[i:])
			dst = utf8.AppendRune(dst, r)
			i += size
		}
	}
	return append(dst, '"')
}
