package extract

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/html"

	"shoal.dev/shoal/pkg/extract/internal/dom"
	"shoal.dev/shoal/pkg/extract/internal/rows"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/utf8text"
)

const (
	// MaxReason is the maximum length of a reason, in bytes.
	MaxReason = 400
	// maxNamed is how many fields a reason names at most. maxShown is how many bytes of a name or a
	// selector it shows. One such field, what to try and a note on scripts are within MaxReason.
	maxNamed = 4
	maxShown = 60
	// fewLetters: scripts may fill a page that has fewer letters without them.
	fewLetters = 200
)

// Explain says in words why a page gave no row, and what to try, in at most MaxReason bytes.
// rendered says that a browser made the page. Explain reads the page once more, so call it only for
// pages without rows. It returns "" for a page that cannot be read in time.
func (e *Extractor) Explain(ctx context.Context, p Page, rendered bool) string {
	if p.Code != "" || len(p.Kept) > 0 {
		return ""
	}
	isHTML, note := p.CheckHTML() == nil, ""
	if isHTML {
		letters, scripts := measureText(p.Body)
		switch {
		case letters == 0 && !scripts:
			return "The page is empty."
		case letters == 0 && rendered:
			return "The page shows no text, in a browser too."
		case letters == 0:
			return "Scripts make the text of this page. It needs a browser: allow the tier render, " +
				"where a fetcher has one."
		case letters < fewLetters && scripts && rendered:
			note = " The page shows little text, in a browser too."
		case letters < fewLetters && scripts:
			// Many a short page has a script that only counts its visitors.
			note = " The page has scripts and little text: maybe it needs a browser, the tier render."
		}
	}
	reason := e.explainRecipe(ctx, p, isHTML, MaxReason-len(note))
	return cutReason(strings.TrimSpace(reason + note))
}

// cutReason shortens reason to at most MaxReason bytes.
func cutReason(reason string) string { return utf8text.CutText(reason, MaxReason) }

// explainRecipe explains the missing rows by what the recipe looks for, in at most most bytes.
func (e *Extractor) explainRecipe(ctx context.Context, p Page, isHTML bool, most int) string {
	switch e.recipe.Type {
	case model.SingleProduct, model.MultipleProducts:
		return e.explainFields(ctx, p, isHTML, most)
	case model.Detection:
		return "Nothing on the page repeats, and it states nothing about one thing."
	case model.ApplicationLDJSON:
		if e.recipe.HiddenData {
			return "The page states no JSON-LD, microdata or RDFa."
		}
		return "The page states no JSON-LD. With tryWithHiddenData microdata and RDFa count, too."
	case model.AIConf:
		return "The page states nothing that the schema asks for."
	default:
		return "The page holds nothing that this type of scraper reads."
	}
}

// explainFields names the fields that match nothing, in at most most bytes.
func (e *Extractor) explainFields(ctx context.Context, p Page, isHTML bool, most int) string {
	columns, isJSON, faults := rows.CompileColumns(e.recipe.Fields)
	if len(faults) > 0 || isJSON == isHTML {
		return ""
	}
	m := e.pages.Get().(*memory)
	m.within(ctx)
	defer func() {
		m.doc.Reset()
		m.json.Reset()
		m.within(context.Background())
		e.pages.Put(m)
	}()
	var missing []int
	if isJSON {
		lines, err := p.CheckJSON()
		if err != nil || m.json.Parse(p.Body, lines) != nil {
			return ""
		}
		for i := range columns {
			if len(columns[i].Path.All(&m.json)) == 0 {
				missing = append(missing, i)
			}
		}
		if m.json.Err() != nil {
			return ""
		}
	} else {
		if m.doc.Parse(p.Body) != nil {
			return ""
		}
		for i := range columns {
			if !columns[i].Selector.IsScalar() && columns[i].Selector.First(&m.doc) == dom.NoMatch {
				missing = append(missing, i)
			}
		}
		if m.doc.Err() != nil {
			return ""
		}
	}
	if len(missing) == 0 {
		return "The selectors match, but what they match is empty."
	}
	for named := min(len(missing), maxNamed); ; named-- {
		reason := "Nothing matches " + e.nameFields(missing, named) + ". Compare the selectors " +
			"with the page as it is now, or propose a scraper for it anew."
		if named == 1 || len(reason) <= most {
			return reason
		}
	}
}

// nameFields lists the first few fields with their selectors, and how many more there are.
func (e *Extractor) nameFields(which []int, few int) string {
	var named []string
	for _, i := range which[:few] {
		f := &e.recipe.Fields[i]
		named = append(named,
			fmt.Sprintf("%s (%s)", utf8text.CutText(f.Name, maxShown),
				utf8text.CutText(f.Selector, maxShown)))
	}
	if more := len(which) - len(named); more > 0 {
		named = append(named, fmt.Sprintf("%d more", more))
	}
	last := len(named) - 1
	if last == 0 {
		return named[0]
	}
	return strings.Join(named[:last], ", ") + " and " + named[last]
}

// measureText counts the letters that a page shows without its scripts, up to fewLetters, and says
// whether it has scripts. The title does not count.
func measureText(body []byte) (letters int, scripts bool) {
	tokens := html.NewTokenizer(bytes.NewReader(body))
	tokens.SetMaxBuf(len(body) + 1)
	hidden := ""
	for letters < fewLetters {
		switch tokens.Next() {
		case html.ErrorToken:
			return letters, scripts
		case html.StartTagToken:
			name, _ := tokens.TagName()
			switch string(name) {
			case "script":
				scripts, hidden = true, "script"
			case "style", "title", "noscript", "template":
				hidden = string(name)
			}
		case html.EndTagToken:
			if name, _ := tokens.TagName(); string(name) == hidden {
				hidden = ""
			}
		case html.TextToken:
			if hidden == "" {
				letters += utf8.RuneCount(bytes.TrimSpace(tokens.Text()))
			}
		}
	}
	return letters, scripts
}
