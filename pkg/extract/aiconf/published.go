package aiconf

import (
	"bytes"
	"cmp"
	"regexp"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"shoal.dev/shoal/pkg/extract/internal/structured"
)

// monthNames are prefixes of month names, in the languages of most pages.
var monthNames = [12]string{
	"jan ene gen sty led tammi oca янв ιαν styc led jän ian siječ saus січ يناير जनवरी",
	"feb fév fev lut úno uno helmi şub фев φεβ velja vasar лют فبراير फरवरी",
	"mar mär mrt mrz maa már bře maalis мар μαρ ožuj kovo берез مارس मार्च",
	"apr avr abr kwi dub huhti nis апр απρ ápr travnj baland квіт أبريل अप्रैल",
	"mai may mei maj mag máj kvě touko май мая μαΐ μαι svibnj geguž трав مايو",
	"jun juin giu cze červn czerw kesä haz июн ιουν jún iun lipnj birž jūn черв يونيو जून",
	"jul juil lug lip červenc heinä tem июл ιουλ júl iul srpnj liepo jūl липн يوليو जुलाई",
	"aug août aout ago sie srp elo ağu авг αυγ agu kolov rugpj серп أغسطس अगस्त",
	"sep set wrz zář syys eyl сен σεπ szep rujna rugs верес سبتمبر सितंबर",
	"oct okt ott out paź říj loka eki окт οκτ spal жовт أكتوبر अक्टूबर",
	"nov lis marras kas ноя νοε studenog lapkr листоп نوفمبر नवंबर",
	"dec dez déc dic des gru pro joulu ara дек δεκ груд ديسمبر दिसंबर",
}

// monthOf returns the month with the longest prefix that matches word, or 0.
func monthOf(word string) time.Month {
	word = strings.ToLower(word)
	best, month := 0, time.Month(0)
	for i, names := range monthNames {
		for name := range strings.FieldsSeq(names) {
			if len(name) > best && strings.HasPrefix(word, name) {
				best, month = len(name), time.Month(i+1)
			}
		}
	}
	return month
}

var (
	yearFirst = regexp.MustCompile(`\b((?:19|20)[0-9]{2})([-/.]) ?([0-9]{1,2})([-/.]) ?([0-9]{1,2})(?:\b|T)`)
	dayFirst  = regexp.MustCompile(`\b([0-9]{1,2}) ?([-/.|]) ?([0-9]{1,2}) ?([-/.|]) ?((?:19|20)?[0-9]{2})\b`)
	dayMonth  = regexp.MustCompile(`\b([0-9]{1,2})(?:(?:\.|st|nd|rd|th|er|º|ª)?[ -]|\.)(?:(?:de|of) )?([\pL\pM]{3,})(?:\.?,?[ -]|\.)(?:(?:de|del) )?((?:19|20)[0-9]{2})\b`)
	monthDay  = regexp.MustCompile(`(\pL{3,})\.? ([0-9]{1,2})(?:st|nd|rd|th)?,?(?: [0-9]{2}:[0-9]{2}:[0-9]{2}(?: (?:\p{Lu}{2,5}|[+-][0-9:]+))?)? ((?:19|20)[0-9]{2})\b`)
	yearMonth = regexp.MustCompile(`\b((?:19|20)[0-9]{2})(?:\.| m\.)? ([\pL\pM]{3,}) ([0-9]{1,2})\b`)
	counted   = regexp.MustCompile(`(?i)\b([0-9]{1,2}) tháng ([0-9]{1,2})(?:,| năm)? ((?:19|20)[0-9]{2})\b`)
	eastern   = regexp.MustCompile(`((?:19|20)[0-9]{2}) ?[年년] ?([0-9]{1,2}) ?[月월] ?([0-9]{1,2}) ?[日일]`)
)

// dayIn returns the first date in a text, as 2006-01-02, or "". monthFirst says that 3/4 is a day
// in March.
func dayIn(text string, monthFirst bool) string {
	text = strings.Join(strings.Fields(text), " ")
	at, found := len(text), ""
	take := func(m []int, year, month, day string) {
		if m[0] < at {
			if date := dayOf(year, month, day); date != "" {
				at, found = m[0], date
			}
		}
	}
	part := func(m []int, i int) string { return text[m[2*i]:m[2*i+1]] }
	if m := yearFirst.FindStringSubmatchIndex(text); m != nil {
		take(m, part(m, 1), part(m, 3), part(m, 5))
	}
	if m := dayFirst.FindStringSubmatchIndex(text); m != nil && part(m, 2) == part(m, 4) {
		day, month := part(m, 1), part(m, 3)
		if monthFirst && part(m, 2) == "/" {
			day, month = month, day
		}
		if len(month) == 2 && month > "12" {
			day, month = month, day
		}
		if year := part(m, 5); len(year) == 4 {
			take(m, year, month, day)
		} else if part(m, 2) == "." {
			take(m, "20"+year, month, day)
		}
	}
	if m := dayMonth.FindStringSubmatchIndex(text); m != nil {
		take(m, part(m, 3), part(m, 2), part(m, 1))
	}
	if m := monthDay.FindStringSubmatchIndex(text); m != nil {
		take(m, part(m, 3), part(m, 1), part(m, 2))
	}
	if m := yearMonth.FindStringSubmatchIndex(text); m != nil {
		take(m, part(m, 1), part(m, 2), part(m, 3))
	}
	if m := counted.FindStringSubmatchIndex(text); m != nil {
		take(m, part(m, 3), part(m, 2), part(m, 1))
	}
	if m := eastern.FindStringSubmatchIndex(text); m != nil {
		take(m, part(m, 1), part(m, 2), part(m, 3))
	}
	return found
}

// dayOf returns a calendar date; "" if it does not exist. month is a number or a name.
func dayOf(year, month, day string) string {
	m := monthOf(month)
	if n, err := strconv.Atoi(month); err == nil {
		m = time.Month(n)
	}
	y, err := strconv.Atoi(year)
	if err != nil {
		return ""
	}
	d, err := strconv.Atoi(day)
	if err != nil {
		return ""
	}
	date := time.Date(y, m, d, 0, 0, 0, 0, time.UTC)
	if date.Month() != m || date.Day() != d {
		return ""
	}
	return date.Format(time.DateOnly)
}

// readsMonthFirst says whether the page's numeric dates have the month before the day.
func (r *reader) readsMonthFirst() bool {
	lang := strings.ToLower(r.data.Lang)
	return lang == "en" || lang == "en-us" || lang == "en_us"
}

// inAddress matches a date in the path of an address.
var inAddress = regexp.MustCompile(`/((?:19|20)[0-9]{2})[/-]([0-9]{1,2})[/-]([0-9]{1,2})(?:[/-]|$)`)

// Distances from the heading, in bytes of text, within which a date applies to it.
const (
	aheadOf  = 200
	behind   = 700
	maxDated = 80 // length of a text that is little more than a date
)

// published returns the publication date that the page shows: in its address, in a time element, or
// near the heading.
func (r *reader) published(f *field) []byte {
	if r.data.Root == nil {
		return nil
	}
	if m := inAddress.FindStringSubmatch(r.page.URL); m != nil {
		if day := dayOf(m[1], m[2], m[3]); day != "" {
			return r.coerce(f, textOnly(day, true))
		}
	}
	var timed, before, after string
	seen, passed, texts := r.mentioned().heading == nil, 0, []string{}
	var visit func(n *html.Node)
	visit = func(n *html.Node) {
		for c := n.FirstChild; c != nil && timed == ""; c = c.NextSibling {
			switch {
			case c == r.names.heading:
				seen = true
			case c.Type == html.TextNode && strings.TrimSpace(c.Data) != "":
				if !seen {
					texts = append(texts, c.Data)
				} else if passed += len(c.Data); passed <= behind && after == "" &&
					len(c.Data) <= maxDated {
					after = dayIn(c.Data, r.readsMonthFirst())
				}
			case c.Type != html.ElementNode || isUnseen(c):
			case seen && after == "" && !r.names.isBeside(c) &&
				dayIn(attrOf(c, "data-date"), r.readsMonthFirst()) != "":
				after = dayIn(attrOf(c, "data-date"), r.readsMonthFirst())
			case seen && after == "" && c.DataAtom == atom.Abbr && !r.names.isBeside(c) &&
				dayIn(attrOf(c, "title"), r.readsMonthFirst()) != "":
				after = dayIn(attrOf(c, "title"), r.readsMonthFirst())
			case c.DataAtom == atom.Time && !r.names.isBeside(c):
				timed = dayIn(attrOf(c, "datetime"), false)
				if timed == "" {
					timed = dayIn(shownText(c, maxDated), r.readsMonthFirst())
				}
			default:
				visit(c)
			}
		}
	}
	visit(r.data.Root)
	for i, passed := len(texts)-1, 0; i >= 0 && before == "" && passed <= aheadOf; i-- {
		passed += len(texts[i])
		if len(texts[i]) <= maxDated {
			before = dayIn(texts[i], r.readsMonthFirst())
		}
	}
	for _, day := range [...]string{timed, after, before, r.datedAnywhere()} {
		if day != "" {
			return r.coerce(f, textOnly(day, true))
		}
	}
	return nil
}

var (
	// dayLabels mark a date as the date of publication, in the languages of most pages.
	dayLabels = regexp.MustCompile(`(?i)(?:^|[\s|(>])(?:published|posted|publication date|` +
		`veröffentlicht|publiziert|erschienen|erstellt|gepostet|datum|publié|mise en ligne|paru|` +
		`publicado|publicada|fecha|pubblicato|pubblicata|data|gepubliceerd|geplaatst|publicerad|` +
		`publisert|udgivet|offentliggjort|julkaistu|opublikowano|dodano|zveřejněno|vydáno|` +
		`publikované|közzétéve|megjelent|publicat|objavljeno|δημοσιεύτηκε|δημοσίευση|опубликовано|` +
		`дата|опубліковано|yayınlanma|diterbitkan|date)(?:$|[^\pL])`)
	// changeLabels mark a date as that of a change.
	changeLabels = regexp.MustCompile(`(?i)(?:^|[\s|(>])(?:updated?|edited|revised|aktualisiert|` +
		`stand|geändert|änderung|mis à jour|actualizado|aggiornato|bijgewerkt|uppdaterad|` +
		`oppdatert|opdateret|päivitetty|zaktualizowano|aktualizováno|обновлено|güncelleme)` +
		`(?:$|[^\pL])`)
	// digitsInAddress is a date in an address without separators. yearLast has the year last.
	digitsInAddress = regexp.MustCompile(`(?:^|[/_=-])((?:19|20)[0-9]{2})([01][0-9])([0-3][0-9])` +
		`(?:[/_.-]|$)`)
	yearLast = regexp.MustCompile(`[/_=-]([0-3]?[0-9])-([01]?[0-9])-((?:19|20)[0-9]{2})(?:[/_.-]|$)`)
)

// datedAnywhere returns a date labelled as publication, else one in the page's heading or address,
// else one in a link to the page. Else it is a labelled change, or the only date on the page.
func (r *reader) datedAnywhere() string {
	published, changed, only, listed := "", "", "", ""
	several, looked := false, 0
	look := func(text string) {
		day := dayIn(text, r.readsMonthFirst())
		switch {
		case day == "":
		case changeLabels.MatchString(text):
			changed = cmp.Or(changed, day)
		case dayLabels.MatchString(text):
			published = cmp.Or(published, day)
		default:
			several = several || only != "" && only != day
			only = day
		}
	}
	var visit func(n *html.Node)
	visit = func(n *html.Node) {
		for c := n.FirstChild; c != nil; c = c.NextSibling {
			if c.Type != html.ElementNode || isUnseen(c) {
				continue
			}
			if c.DataAtom == atom.A && listed == "" && looked < maxLines &&
				r.isPage(r.data.Resolve(attrOf(c, "href"))) {
				listed = dayIn(shownText(c, maxDated), r.readsMonthFirst())
			}
			if r.names.isBeside(c) {
				continue
			}
			if isLine(c) && looked < maxLines {
				looked++
				if text := shownText(c, maxDated); len(text) <= maxDated {
					look(text)
					if published == "" && dayLabels.MatchString(text) && c.NextSibling != nil {
						published = r.dayBeside(c)
					}
				}
			}
			visit(c)
		}
	}
	visit(r.data.Root)
	if several {
		only = ""
	}
	titled := ""
	if heading := r.names.heading; heading != nil {
		titled = dayIn(shownText(heading, maxShown), r.readsMonthFirst())
	}
	addressed := ""
	if m := digitsInAddress.FindStringSubmatch(r.page.URL); m != nil {
		addressed = dayOf(m[1], m[2], m[3])
	} else if m := yearLast.FindStringSubmatch(r.page.URL); m != nil {
		addressed = dayOf(m[3], m[2], m[1])
	}
	return cmp.Or(published, titled, addressed, listed, changed, only)
}

// dayBeside returns the date that follows a label and fills its element.
func (r *reader) dayBeside(label *html.Node) string {
	for n := label.NextSibling; n != nil; n = n.NextSibling {
		text := n.Data
		if n.Type == html.ElementNode {
			text = shownText(n, maxDated)
		}
		if strings.TrimSpace(text) != "" {
			if len(text) > maxDated {
				return ""
			}
			return dayIn(text, r.readsMonthFirst())
		}
	}
	return ""
}

// ofDay returns the publication date if the stated ones are doubtful, or if only an element marks
// it. It is nil if the usual rules for stated values apply.
func (r *reader) ofDay(f *field, things []*structured.Item) []byte {
	item := []byte(nil)
	for _, it := range things {
		if item == nil {
			item = r.ofItem(f, it)
		}
	}
	const from, to = "article:published_time", "article:modified_time"
	meta := r.coerce(f, textOnly(r.data.MetaValue(from), true))
	if changed := r.data.MetaValue(to); changed != "" && r.data.MetaValue(from) > changed {
		if item == nil { // a change cannot precede publication
			return r.published(f)
		}
		return nil
	}
	switch {
	case item == nil && meta == nil:
		return r.coerce(f, textOnly(r.markedDay(), true))
	case item != nil && meta != nil && !bytes.Equal(item, meta) &&
		bytes.Equal(meta, r.published(f)):
		return meta
	}
	return nil
}

// markedDay returns the one date that elements of the page mark as published.
func (r *reader) markedDay() string {
	if r.data.Root == nil {
		return ""
	}
	marked := ""
	for n := range r.data.Root.Descendants() {
		if attrOf(n, "itemprop") != "datePublished" {
			continue
		}
		day := dayIn(cmp.Or(attrOf(n, "datetime"), attrOf(n, "content")), false)
		if marked != "" && marked != day {
			return ""
		}
		marked = day
	}
	return marked
}
