package dom

// tag is an element name that the parser or selectors handle quickly; other is any other name.
type tag uint8

const (
	other tag = iota
	tA
	tAddress
	tApplet
	tArea
	tArticle
	tAside
	tB
	tBase
	tBasefont
	tBgsound
	tBig
	tBlockquote
	tBody
	tBr
	tButton
	tCaption
	tCenter
	tCode
	tCol
	tColgroup
	tDd
	tDetails
	tDialog
	tDir
	tDiv
	tDl
	tDt
	tEm
	tEmbed
	tFieldset
	tFigcaption
	tFigure
	tFont
	tFooter
	tForm
	tFrame
	tFrameset
	tH1
	tH2
	tH3
	tH4
	tH5
	tH6
	tHead
	tHeader
	tHgroup
	tHr
	tHTML
	tI
	tIframe
	tImage
	tImg
	tInput
	tKeygen
	tLabel
	tLi
	tLink
	tListing
	tMain
	tMarquee
	tMath
	tMenu
	tMeta
	tNav
	tNobr
	tNoembed
	tNoframes
	tNoscript
	tObject
	tOl
	tOptgroup
	tOption
	tP
	tParam
	tPath
	tPicture
	tPlaintext
	tPre
	tRb
	tRp
	tRt
	tRtc
	tRuby
	tS
	tScript
	tSearch
	tSection
	tSelect
	tSmall
	tSource
	tSpan
	tStrike
	tStrong
	tStyle
	tSub
	tSummary
	tSup
	tSvg
	tTable
	tTbody
	tTd
	tTemplate
	tTextarea
	tTfoot
	tTh
	tThead
	tTime
	tTitle
	tTr
	tTrack
	tTt
	tU
	tUl
	tUse
	tWbr
	tXmp
	tags
)

// Rules for an element name, wherever it occurs.
const (
	special    = 1 << iota // stops the search of "any other end tag"
	scopeStop              // bounds the default scope
	impliedEnd             // closed by generate implied end tags
	formatting             // kept in the list of active formatting elements
	rawText                // contents are text up to the end tag
	references             // rawText with character references
	hidden                 // a browser never shows its contents as text
	attributed             // its attributes affect tree construction
)

// tagInfo has one row per tag, in the order of the constants.
var tagInfo = [tags]struct {
	name  string
	rules uint8
}{
	{"", 0},
	{"a", formatting},
	{"address", special},
	{"applet", special | scopeStop},
	{"area", special},
	{"article", special},
	{"aside", special},
	{"b", formatting},
	{"base", special},
	{"basefont", special},
	{"bgsound", special},
	{"big", formatting},
	{"blockquote", special},
	{"body", special | attributed},
	{"br", special},
	{"button", special},
	{"caption", special | scopeStop},
	{"center", special},
	{"code", formatting},
	{"col", special},
	{"colgroup", special},
	{"dd", special | impliedEnd},
	{"details", special},
	{"dialog", 0},
	{"dir", special},
	{"div", special},
	{"dl", special},
	{"dt", special | impliedEnd},
	{"em", formatting},
	{"embed", special},
	{"fieldset", special},
	{"figcaption", special},
	{"figure", special},
	{"font", formatting},
	{"footer", special},
	{"form", special},
	{"frame", special},
	{"frameset", special},
	{"h1", special},
	{"h2", special},
	{"h3", special},
	{"h4", special},
	{"h5", special},
	{"h6", special},
	{"head", special},
	{"header", special},
	{"hgroup", special},
	{"hr", special},
	{"html", special | scopeStop | attributed},
	{"i", formatting},
	{"iframe", special | rawText | hidden},
	{"image", 0},
	{"img", special},
	{"input", special | attributed},
	{"keygen", special},
	{"label", 0},
	{"li", special | impliedEnd},
	{"link", special},
	{"listing", special},
	{"main", special},
	{"marquee", special | scopeStop},
	{"math", attributed},
	{"menu", special},
	{"meta", special},
	{"nav", special},
	{"nobr", formatting},
	{"noembed", special | rawText | hidden},
	{"noframes", special | rawText | hidden},
	{"noscript", special | rawText | hidden},
	{"object", special | scopeStop},
	{"ol", special},
	{"optgroup", impliedEnd},
	{"option", impliedEnd},
	{"p", special | impliedEnd},
	{"param", special},
	{"path", 0},
	{"picture", 0},
	{"plaintext", special},
	{"pre", special},
	{"rb", impliedEnd},
	{"rp", impliedEnd},
	{"rt", impliedEnd},
	{"rtc", impliedEnd},
	{"ruby", 0},
	{"s", formatting},
	{"script", special | rawText | hidden},
	{"search", 0},
	{"section", special},
	{"select", special | scopeStop},
	{"small", formatting},
	{"source", special},
	{"span", 0},
	{"strike", formatting},
	{"strong", formatting},
	{"style", special | rawText | hidden},
	{"sub", 0},
	{"summary", special},
	{"sup", 0},
	{"svg", attributed},
	{"table", special | scopeStop},
	{"tbody", special},
	{"td", special | scopeStop},
	{"template", special | scopeStop | hidden},
	{"textarea", special | rawText | references},
	{"tfoot", special},
	{"th", special | scopeStop},
	{"thead", special},
	{"time", 0},
	{"title", special | rawText | references},
	{"tr", special},
	{"track", special},
	{"tt", formatting},
	{"u", formatting},
	{"ul", special},
	{"use", 0},
	{"wbr", special},
	{"xmp", special | rawText},
}

// holdsRows says whether an element is a table or a part of one that directly holds rows or cells.
func (t tag) holdsRows() bool {
	return t == tTable || t == tTbody || t == tTfoot || t == tThead || t == tTr
}

func (t tag) is(rule uint8) bool { return tagInfo[t].rules&rule != 0 }

// tagSet is a set of tags; other represents all names without a tag.
type tagSet [(tags + 63) / 64]uint64

var allTags = func() (s tagSet) {
	for i := range s {
		s[i] = ^uint64(0)
	}
	return s
}()

var attributedTags = func() (s tagSet) {
	for t := range tags {
		if t.is(attributed) {
			s.add(t)
		}
	}
	return s
}()

func (s *tagSet) has(t tag) bool { return s[t/64]>>(t%64)&1 != 0 }

func (s *tagSet) add(t tag) { s[t/64] |= 1 << (t % 64) }

func (s *tagSet) addAll(t tagSet) {
	for i := range s {
		s[i] |= t[i]
	}
}

// tagTable finds a tag by name. It is a hash table with open addressing; the key is the name's
// first eight bytes in lower case.
type tagTable [512]struct {
	key uint64
	tag tag
}

var tagsByName = newTagTable()

func newTagTable() *tagTable {
	var t tagTable
	for i := other + 1; i < tags; i++ {
		key := nameKey(tagInfo[i].name)
		slot := tagSlot(key)
		for t[slot].tag != other {
			slot = (slot + 1) % uint64(len(t))
		}
		t[slot].key, t[slot].tag = key, i
	}
	return &t
}

// nameKey packs the first eight bytes of a name, the first byte lowest.
func nameKey(name string) uint64 {
	var key uint64
	for i := 0; i < len(name) && i < 8; i++ {
		key |= uint64(name[i]) << (8 * i)
	}
	return key
}

// plainEnds are end tags in lower case, without white space. They close their elements by no
// further rule, or by one if the element is a formatting one. Names of more than seven letters are
// left out: size is 0.
var plainEnds = func() (ends [tags]struct {
	key, mask uint64 // of the name and the ">" after it
	size      int    // of both
}) {
	for t := range ends {
		switch tag(t) {
		case other, tHTML, tHead, tBody, tForm, tTemplate, tApplet, tMarquee, tObject, tTd, tTh,
			tCaption, tCol, tColgroup:
			continue
		}
		name := tagInfo[t].name + ">"
		if n := len(name); n <= 8 {
			ends[t].key, ends[t].mask, ends[t].size = nameKey(name), ^uint64(0)>>(64-8*n), n
		}
	}
	return ends
}()

// course is the effect of a start tag in the body if no other rule applies.
type course uint8

const (
	byRules course = iota // by the tag's own rules
	block                 // closes a paragraph, opens an element
	inline                // opens an element
	void                  // adds an element without contents
)

var courses = func() (c [tags]course) {
	for _, t := range []tag{tAddress, tArticle, tAside, tBlockquote, tCenter, tDetails, tDialog,
		tDir, tDiv, tDl, tFieldset,
		tFigcaption, tFigure, tFooter, tHeader, tHgroup, tListing, tMain, tMenu, tNav, tOl, tP,
		tPre, tSearch, tSection,
		tSummary, tUl} {
		c[t] = block
	}
	for _, t := range []tag{other, tLabel, tPath, tPicture, tRuby, tSpan, tSub, tSup, tTime, tUse} {
		c[t] = inline
	}
	for _, t := range []tag{tArea, tBr, tEmbed, tImg, tKeygen, tWbr} {
		c[t] = void
	}
	return c
}()

// eightBytes is nameKey of eight bytes.
func eightBytes(s string) uint64 {
	_ = s[7]
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 | uint64(
		s[4])<<32 | uint64(s[5])<<40 |
		uint64(s[6])<<48 | uint64(s[7])<<56
}

func tagSlot(key uint64) uint64 { return key * 0x9E3779B97F4A7C15 >> 55 }

// find returns the tag of a lower-case name whose key is known.
func (t *tagTable) find(key uint64, name string) tag {
	for slot := tagSlot(key); t[slot].tag != other; slot = (slot + 1) % uint64(len(t)) {
		// The key holds names shorter than eight bytes completely.
		if t[slot].key == key && (len(name) < 8 || tagInfo[t[slot].tag].name == name) {
			return t[slot].tag
		}
	}
	return other
}

func tagOf(name string) tag { return tagsByName.find(nameKey(name), name) }
