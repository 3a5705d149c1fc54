package sitemap

import (
	"strings"

	"shoal.dev/shoal/pkg/address"
)

// limitedText collects text of bounded length.
type limitedText struct {
	text     []byte
	long     bool // text beyond the bound was dropped
	declared bool // it has a reference to an entity that the document would have to declare
}

func (l *limitedText) add(bytes ...byte) {
	if len(l.text)+len(bytes) > address.Longest {
		l.long = true
		return
	}
	if !l.long {
		l.text = append(l.text, bytes...)
	}
}

// address is the text as an address, "" if it is too long or has an unknown entity.
func (l *limitedText) address() string {
	if l.long || l.declared {
		return ""
	}
	return mended(strings.TrimSpace(string(l.text)))
}

// title is the text as a title: runs of blanks become one, and a long text is cut.
func (l *limitedText) title() string {
	return shortened(strings.Join(strings.Fields(mended(string(l.text))), " "), MaxTitle)
}

// state is what a document is being read for.
type state struct {
	at         int    // depth of the current entry; 0: none
	prefix     string // of its name
	entry      Entry
	instead    string   // of an RSS item: its Atom link, or else its guid, in case it has no link
	caption    string   // of the first image, in case it has no title
	inImage    bool     // inside the first image
	alternates []string // the same page in other languages

	wanted func(*limitedText) // receives the current text; nil: nobody
	since  int                // depth of that text's element
	kept   limitedText
}

// keep appends to the current text, if it is wanted.
func (s *state) keep(bytes ...byte) {
	if s.wanted != nil {
		s.kept.add(bytes...)
	}
}

// want collects the text of the current element, unless an enclosing element's text is wanted.
func (d *document) want(take func(*limitedText)) {
	if d.wanted == nil {
		d.wanted, d.since, d.kept = take, d.depth, limitedText{text: d.kept.text[:0]}
	}
}

// wantOnce collects a text unless into already has one.
func (d *document) wantOnce(into *string, as func(*limitedText) string) {
	if *into == "" {
		d.want(func(text *limitedText) { *into = as(text) })
	}
}

// opened is called for each element except the root.
func (d *document) opened(name qname, given *attributes) {
	if d.at == 0 {
		if d.isEntry(name) {
			kept := d.kept
			d.state = state{at: d.depth, prefix: name.prefix, kept: kept,
				alternates: d.alternates[:0]}
		}
		return
	}
	own := name.prefix == d.prefix
	switch d.form {
	case URLs:
		d.openedInURL(name, given, own)
	case Index:
		if own && name.local == "loc" && d.depth == d.at+1 {
			d.wantOnce(&d.entry.URL, (*limitedText).address)
		}
	case RSS:
		d.openedInItem(name, given, own)
	case Atom:
		if own && name.local == "link" && d.depth == d.at+1 {
			d.linkOfAtom(given)
		} else if !own {
			d.openedInMedia(name, given)
		}
	}
}

// isEntry says whether an element is an entry of its document.
func (d *document) isEntry(name qname) bool {
	switch d.form {
	case URLs:
		return d.depth == 2 && name.local == "url"
	case Index:
		return d.depth == 2 && name.local == "sitemap"
	case RSS: // in a channel or beside it
		return d.depth <= 3 && name.local == "item"
	case Atom:
		return d.depth == 2 && name.local == "entry"
	}
	return false
}

func (d *document) openedInURL(name qname, given *attributes, own bool) {
	switch depth := d.depth - d.at; {
	case depth == 1 && own && name.local == "loc":
		d.wantOnce(&d.entry.URL, (*limitedText).address)
	case depth == 1 && !own && name.local == "link":
		if strings.EqualFold(given.rel, "alternate") && given.href != "" &&
			len(d.alternates) < maxAlternates {
			d.alternates = append(d.alternates, given.href)
		}
	case depth == 1 && !own && name.local == "image":
		d.inImage = d.entry.Image == ""
	case depth == 2 && d.inImage && name.local == "loc":
		d.wantOnce(&d.entry.Image, (*limitedText).address)
	case depth == 2 && d.inImage && name.local == "title":
		d.wantOnce(&d.entry.ImageTitle, (*limitedText).title)
	case depth == 2 && d.inImage && name.local == "caption":
		d.wantOnce(&d.caption, (*limitedText).title)
	}
}

func (d *document) openedInItem(name qname, given *attributes, own bool) {
	depth := d.depth - d.at
	if depth == 1 && name.local == "link" && namesPage(given) {
		d.instead = given.href
	}
	switch {
	case !own:
		d.openedInMedia(name, given)
	case depth == 1 && name.local == "link":
		d.wantOnce(&d.entry.URL, (*limitedText).address)
	case depth == 1 && name.local == "guid" && given.permalink != "false":
		d.wantOnce(&d.instead, (*limitedText).address)
	case depth == 1 && name.local == "enclosure" && isImage(given):
		d.imageAt(given.url)
	}
}

// openedInMedia reads the media extension of feeds.
func (d *document) openedInMedia(name qname, given *attributes) {
	switch {
	case name.local == "thumbnail", name.local == "content" && isImage(given):
		d.imageAt(given.url)
	case name.local == "title":
		d.wantOnce(&d.entry.ImageTitle, (*limitedText).title)
	}
}

// imageAt sets the first image of an entry.
func (d *document) imageAt(address string) {
	if d.entry.Image == "" {
		d.entry.Image = address
	}
}

func isImage(given *attributes) bool {
	return given.medium == "image" || strings.HasPrefix(strings.ToLower(given.kind), "image/")
}

// namesPage says whether an Atom link names the page that its entry is about.
func namesPage(given *attributes) bool {
	return given.href != "" && (given.rel == "" || given.rel == "alternate")
}

func (d *document) linkOfAtom(given *attributes) {
	switch {
	case namesPage(given) && d.entry.URL == "":
		d.entry.URL = given.href
	case given.rel == "enclosure" && isImage(given):
		d.imageAt(given.href)
	}
}

// closed is called at the end of each element. Its error is errEnough.
func (d *document) closed() error {
	if d.wanted != nil && d.depth == d.since {
		take := d.wanted
		d.wanted = nil
		take(&d.kept)
	}
	if d.inImage && d.depth == d.at+1 {
		d.inImage = false
	}
	if d.at == 0 || d.depth != d.at {
		return nil
	}
	d.at = 0
	return d.tell()
}

// tell visits the current entry, then the same page in other languages.
func (d *document) tell() error {
	e := d.entry
	e.Sitemap = d.form == Index
	if d.form == RSS && e.URL == "" && isWeb(d.instead) {
		e.URL = d.instead
	}
	if e.ImageTitle == "" {
		e.ImageTitle = d.caption
	}
	if e.Image == "" {
		e.ImageTitle = "" // there is no image
	}
	if e.URL != "" && !d.visit(e) {
		return errEnough
	}
	for _, other := range d.alternates {
		if other != e.URL && !d.visit(Entry{URL: other}) {
			return errEnough
		}
	}
	return nil
}
