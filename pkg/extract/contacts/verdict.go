package contacts

import (
	"regexp"
	"strings"
)

// verdict says whether a fetched page can be read.
type verdict string

// The verdicts.
const (
	readable  verdict = ""
	parked    verdict = "parked"  // a domain without a website, or with a disabled one
	challenge verdict = "bot"     // asks for proof of being human
	wall      verdict = "wall"    // shows nothing until cookies are accepted
	shell     verdict = "shell"   // scripts build the page
	profile   verdict = "profile" // redirects to a social or marketplace profile
)

// final says that pages linked from such a page are not the website either.
func (v verdict) final() bool { return v == parked || v == challenge || v == profile }

// Maximum visible text of each kind of unreadable page, in bytes.
const (
	maxParked    = 4000
	maxChallenge = 2000
	maxShell     = 250
	maxWallRest  = 160
)

var (
	parkedText = regexp.MustCompile(named(
		`(?i)domain (?:name )?NAME(?:is|may be|could be) (?:for sale|parked|available for purchase)|buy this domain|this domain (?:name )?NAME(?:has been|is) registered|` +
			`domain NAME(?:steht|ist) (?:hier )?(?:zum verkauf|geparkt|käuflich|zu verkaufen)|diese domain (?:kaufen|erwerben|wurde (?:soeben |gerade |frisch )?(?:registriert|reserviert|geparkt)|ist (?:bereits )?registriert)|` +
			`hier entsteht (?:in kürze )?eine neue (?:internet|web)(?:präsenz|seite)|diese (?:website|webseite|internetpräsenz) wurde (?:frisch|soeben|gerade)|parked (?:free|domain|page)|domain parking|` +
			`(?:this|the) (?:web)?site is (?:parked|suspended)|account (?:has been )?suspended|(?:ce|le) (?:nom de )?domaine NAME(?:est|a été) (?:à vendre|en vente|réservé|parqué)|domaine à vendre|` +
			`(?:este|el) dominio NAMEestá (?:en venta|a la venta|aparcado|registrado)|dominio NAME(?:è )?in vendita|questo dominio è (?:stato registrato|parcheggiato)|` +
			`(?:deze|de) domein(?:naam)? NAMEis (?:te koop|geregistreerd|gereserveerd)|domein (?:is )?te koop|domena NAME(?:jest )?na sprzedaż|ta domena (?:jest|została)|` +
			`tato doména je (?:na prodej|registrovaná|zaparkovaná)|domén[ay] NAME(?:je )?na prodej|den(?:na)? domän(?:en)? NAMEär (?:till salu|registrerad|parkerad)|` +
			`d(?:ette|et) domene(?:t)? er (?:til salgs|registrert|parkert)|eladó domain|домен NAME(?:продается|продаётся|припаркован)|make an offer on this domain|inquire about this domain|` +
			`apache2 (?:ubuntu|debian) default page|welcome to nginx!|^(?:test page for the )?apache http server|plesk (?:default|obsidian|server) page|default web ?site page|website coming soon.{0,40}(?:godaddy|hostinger|namecheap)|future home of something quite cool|domain default page|index of /`))
	parkedSource = regexp.MustCompile(`sedoparking\.|parkingcrew\.|bodis\.com|parklogic\.|above\.com/|cashparking|hugedomains\.com|afternic\.com|dan\.com/|parking\.(?:reg|namecheap|godaddy)|` +
		`img1\.wsimg\.com/parking|domainmarket\.|undeveloped\.com|uniregistry|rookmedia|skenzo\.|ztomy\.|sedo\.com/|efty\.com`)
	challengeText = regexp.MustCompile(`(?i)just a moment\.\.\.|checking (?:your browser|if the site connection is secure)|attention required! \| cloudflare|verify(?:ing)? (?:that )?you are (?:a )?human|` +
		`are you (?:a )?(?:human|robot)|i'?m not a robot|i am human|ddos protection by|enable javascript and cookies to continue|robot challenge|request unsuccessful\. incapsula|access denied|` +
		`pardon our interruption|press (?:&|and) hold|security check|sicherheits(?:überprüfung|abfrage)|ich bin kein roboter|bestätigen sie, dass sie (?:ein mensch|kein roboter)|unusual traffic|bot (?:protection|verification|check)|` +
		`vérification de sécurité|je ne suis pas un robot|no soy un robot|non sono un robot|ik ben geen robot|captcha|human verification|your browser will redirect|bitte warten.{0,40}(?:überprüft|geprüft)`)
	challengeSource = regexp.MustCompile(
		`captcha-delivery\.com|/cdn-cgi/challenge-platform|_incapsula_resource|geo\.captcha|sgcaptcha|px-captcha|awswaf|perfdrive|arkoselabs`)
	needsScript  = regexp.MustCompile(`(?i)javascript`)
	consentWords = regexp.MustCompile(
		`(?i)cookie|consent|einwillig|zustimm|akzept|accept|datenschutz|privacy|impressum|imprint|tracking|personalis|partner|ablehnen|reject|einstellungen|settings|` +
			`confidentialité|consentement|consentimiento|consenso|toestemming|aceptar|accetta|accepter|refuser|rechazar|rifiuta|akkoord|zgod|souhlas|plausta|werbung|werbefrei|abo|mentions légales|aviso legal|speichern|endgerät|vendor|anbieter|gdpr|dsgvo|rgpd`)
	wallWords = regexp.MustCompile(`(?i)cookie|consent|einwilligung|zustimm|zgod|souhlas|toestemming|consentement|consentimiento`)
)

// named replaces NAME in pattern by an optional domain name.
func named(pattern string) string { return strings.ReplaceAll(pattern, "NAME", `(?:\S+\.\S+ )?`) }

// judge says whether a fetched page shows what a visitor without scripts should see.
func judge(d *document, text, pageURL string) verdict {
	size := len(text)
	sources := strings.Join(d.sources, " ") + " " + strings.ToLower(pageURL)
	switch {
	case size < maxParked && (parkedText.MatchString(d.title) || parkedText.MatchString(text) ||
		parkedSource.MatchString(sources)):
		return parked
	case size < maxChallenge &&
		(challengeText.MatchString(d.title) || challengeText.MatchString(text) &&
			countLinks(d) < 5 ||
			challengeSource.MatchString(sources) && size < maxShell):
		return challenge
	case isWall(text):
		return wall
	case isShell(d, text):
		return shell
	}
	return readable
}

func countLinks(d *document) int {
	n := 0
	for _, l := range d.links {
		if l.from >= 0 && !strings.HasPrefix(l.href, "#") {
			n++
		}
	}
	return n
}

// wallStems has a stem, in lower case, of each match of wallWords.
var wallStems = []string{"cookie", "consent", "einwilligung", "zustimm", "zgod", "souhlas",
	"toestemming"}

// speaksOfWalls is a cheap pre-check. If it is false, as for most pages, wallWords has fewer than
// two matches.
func speaksOfWalls(text string) bool {
	lower, found := strings.ToLower(text), 0
	for _, stem := range wallStems {
		found += strings.Count(lower, stem)
	}
	// characters that the expression folds to s and k
	return found > 1 || strings.ContainsAny(text, "ſ\u212a")
}

// isWall says that a page is about nothing but cookies.
func isWall(text string) bool {
	if len(text) > 3*maxParked || !speaksOfWalls(text) ||
		len(wallWords.FindAllStringIndex(text, 3)) < 2 {
		return false
	}
	rest := 0
	for line := range strings.SplitSeq(text, "\n") {
		for sentence := range strings.SplitSeq(line, ". ") {
			if !consentWords.MatchString(sentence) {
				rest += len(sentence)
			}
		}
		if rest > maxWallRest {
			return false
		}
	}
	return true
}

// isShell says that a page has scripts but hardly any text.
func isShell(d *document, text string) bool {
	shown := len(strings.TrimSpace(text)) - len(strings.Join(strings.Fields(d.noscript), " "))
	switch {
	case d.frameset:
		return shown < maxShell
	case shown >= maxShell || d.scripts == 0:
		return false
	}
	return d.roots || needsScript.MatchString(d.noscript) || shown < 20
}
