package web

import (
	"bytes"
	"html"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Bounds of the size of walls. Challenges are small, so a larger shop page that embeds a vendor's
// script is not one. Pages with an error status may be larger, since they are not shop pages
// anyway.
const (
	maxWall       = 16 << 10
	maxFailedWall = 96 << 10
	// maxWallLinks is the most links of a page with a challenge title. Articles about challenges
	// have more.
	maxWallLinks = 8
)

// wall recognizes a page that a vendor shows instead of the requested one.
type wall struct {
	vendor string
	failed bool // only with a status other than 2xx
	max    int  // bytes; 0: maxWall, or maxFailedWall
	// all must be on the page; only the vendor's own page has them, not one about it or with its
	// script
	marks []string
}

// walls are the walls that are known for certain.
var walls = []wall{
	{vendor: "Cloudflare", marks: []string{"<title>Just a moment...</title>",
		"/cdn-cgi/challenge-platform/"}},
	{vendor: "Cloudflare", marks: []string{"window._cf_chl_opt", "/cdn-cgi/challenge-platform/"}},
	{vendor: "Cloudflare", marks: []string{"<title>Attention Required! | Cloudflare</title>",
		`id="cf-error-details"`}},
	{vendor: "Cloudflare", failed: true,
		marks: []string{"used Cloudflare to restrict access", `id="cf-error-details"`}},
	{vendor: "Akamai", failed: true,
		marks: []string{"<TITLE>Access Denied</TITLE>", "Reference&#32;&#35;"}},
	{vendor: "Akamai", failed: true, marks: []string{"Access Denied", "errors.edgesuite.net"}},
	{vendor: "Akamai", marks: []string{"/_sec/verify?provider=interstitial", "bm-verify"}},
	{vendor: "Akamai", marks: []string{"sec-if-cpt-container", "/_sec/cp_challenge/"}},
	{vendor: "HUMAN", marks: []string{"window._pxAppId", "px-captcha"}},
	{vendor: "HUMAN", marks: []string{"_pxAppId", "captcha.px-cdn.net/"}},
	{vendor: "DataDome", marks: []string{"captcha-delivery.com/", "var dd={"}},
	{vendor: "DataDome", failed: true, max: 4 << 10,
		marks: []string{"captcha-delivery.com/captcha/"}},
	{vendor: "Imperva", marks: []string{"/_Incapsula_Resource?", "Incapsula incident ID"}},
	{vendor: "Imperva", max: 4 << 10,
		marks: []string{`/_Incapsula_Resource?SWJIYLWA=`, `CONTENT="NOINDEX, NOFOLLOW"`}},
	{vendor: "AWS WAF", marks: []string{"window.gokuProps", ".awswaf.com/"}},
	{vendor: "AWS WAF", marks: []string{"AwsWafIntegration.", "challenge-container"}},
	{vendor: "Kasada", marks: []string{"window.KPSDK={}", "/ips.js?"}},
	{vendor: "Sucuri", marks: []string{"<title>Sucuri WebSite Firewall - Access Denied</title>"}},
	{vendor: "Sucuri", max: 4 << 10, marks: []string{"sucuri_cloudproxy_js", "document.cookie"}},
	{vendor: "captcha", marks: []string{"/errors/validateCaptcha", `name="amzn"`}},
	{vendor: "captcha", marks: []string{"detected unusual traffic from your computer network",
		"g-recaptcha"}},
	{vendor: "captcha", failed: true, marks: []string{`class="g-recaptcha"`}},
	{vendor: "captcha", failed: true, marks: []string{`class="h-captcha"`}},
	{vendor: "captcha", failed: true, marks: []string{`class="cf-turnstile"`}},
	{vendor: "captcha", failed: true, marks: []string{`class="frc-captcha"`}},
}

// challengeTitles are whole titles that only substitute pages have, in lower case.
var challengeTitles = titles(`
pardon our interruption
pardon our interruption...
access to this page has been denied
access to this page has been denied.
robot or human?
robot check
are you a robot?
are you human?
bot verification
human verification
verify you are human
please verify you are a human
verifying you are human. this may take a few seconds.
vercel security checkpoint
client challenge
checking your browser
checking your browser...
checking your browser - recaptcha
checking your browser before accessing
ddos-guard
ddos protection by ddos-guard
one moment, please...
let's confirm you are human
security check required
sorry, you have been blocked
you have been blocked
you are being redirected...
вы не робот?
проверка браузера
проверка, что вы не робот
验证码
安全验证
人机验证
访问验证
アクセスが拒否されました
`)

// titles returns a set of lines.
func titles(lines string) map[string]bool {
	set := map[string]bool{}
	for line := range strings.Lines(strings.TrimSpace(lines)) {
		set[strings.TrimSpace(line)] = true
	}
	return set
}

// recogniseWall returns the vendor of a known challenge or refusal page, or "".
func recogniseWall(status int, body []byte, response Answer) string {
	failed := status < 200 || status > 299
	if status == 404 || status == 410 {
		return ""
	}
	if vendor := wallOfHeader(status, response); vendor != "" {
		return vendor
	}
	if len(body) > maxFailedWall {
		return ""
	}
	if challengeTitles[title(body)] && bytes.Count(body, []byte("<a ")) <= maxWallLinks {
		return "challenge"
	}
	if len(body) > maxWall && !failed {
		return ""
	}
	for i := range walls {
		w := &walls[i]
		if (failed || !w.failed) && (w.max == 0 || len(body) <= w.max) && holdsAll(body, w.marks) {
			return w.vendor
		}
	}
	return ""
}

// wallOfHeader recognizes the vendors that mark their walls in the header.
func wallOfHeader(status int, response Answer) string {
	switch {
	case response == nil:
	case response.Header("Cf-Mitigated") == "challenge":
		return "Cloudflare"
	case (status == 202 || status == 405) && response.Header("X-Amzn-Waf-Action") != "":
		return "AWS WAF"
	case status == 429 && response.Header("X-Kpsdk-Ct") != "":
		return "Kasada"
	case status == 403 && response.Header("X-Dd-B") != "":
		return "DataDome"
	}
	return ""
}

func holdsAll(body []byte, marks []string) bool {
	for _, mark := range marks {
		if !bytes.Contains(body, []byte(mark)) {
			return false
		}
	}
	return true
}

// titleWithin is how far into a page to look for its title.
const titleWithin = 8 << 10

// loginTitles begin the titles of login pages, in lower case, whatever words follow.
var loginTitles = []string{"member login", "please log in", "please login", "please sign in",
	"anmelden", "anmeldung bei", "anmeldung oder", "einloggen", "connexion à mon",
	"connexion à votre", "connexion ou", "se connecter", "connectez-vous", "identifiez-vous",
	"iniciar sesión", "inicia sesión", "iniciar sessão", "entrar na conta", "entrar na sua conta",
	"entrar na minha conta", "entrar ou", "accedi", "inloggen", "logga in", "log ind", "logg inn",
	"zaloguj", "logowanie", "přihlášení", "bejelentkezés", "giriş yap", "giriş sayfası",
	"вход в аккаунт", "вход в личный кабинет", "вход в систему", "вход на сайт",
	"вход и регистрация", "вход или регистрация", "войти в аккаунт", "войти в личный кабинет",
	"войти в систему", "войти на сайт", "войти или", "ログインページ", "ログイン画面", "ログインしてください",
	"登录页", "登录页面", "登录注册", "登入頁面", "로그인 페이지", "로그인 화면", "로그인이 필요합니다", "đăng nhập"}

// loginWords also mean something else, such as an entrance or a connection. They are the whole
// first part of a login page's title, or one of loginLinks follows.
var loginWords = []string{"log in", "log-in", "login", "sign in", "sign-in", "signin", "anmeldung",
	"connexion", "entrar", "giriş", "вход", "войти", "ログイン", "登录", "登入", "로그인"}

// loginLinks are words that go on with a login, as in "log in to".
var loginLinks = titles(`
to
with
or
and
at
via
using
form
page
required
`)

// loginPaths are the path segments of login pages.
var loginPaths = []string{"login", "signin", "sign-in", "log-in", "sign_in", "authwall",
	"checkpoint", "login.html", "login.php",
	"login.aspx", "signin.html", "sso", "servicelogin"}

// isLoginWall says whether a page asks for a login instead of showing what was requested. It has a
// password field. It also has a login title, or redirects led to a login path. A requested login
// page is not a wall.
func isLoginWall(asked string, page *Page) bool {
	if isLoginPath(asked) {
		return false
	}
	led := page.Hops > 0 && isLoginPath(page.Final)
	return (led || isLoginTitle(title(page.Body))) && hasPassword(page.Body)
}

func isLoginPath(url string) bool {
	_, path := splitOrigin(url)
	path, _, _ = strings.Cut(path, "?")
	for segment := range strings.SplitSeq(strings.ToLower(path), "/") {
		for _, known := range loginPaths {
			if segment == known {
				return true
			}
		}
	}
	return false
}

// title returns the text of the page's first title, in lower case and with single spaces.
func title(body []byte) string {
	head := body[:min(len(body), titleWithin)]
	start := bytes.Index(head, []byte("<title"))
	if start < 0 {
		if start = bytes.Index(head, []byte("<TITLE")); start < 0 {
			return ""
		}
	}
	_, text, _ := bytes.Cut(head[start:], []byte(">"))
	text, end, _ := bytes.Cut(text, []byte("</"))
	if len(end) < 5 || !bytes.EqualFold(end[:5], []byte("title")) {
		return ""
	}
	plain := html.UnescapeString(string(text[:min(len(text), 200)]))
	return strings.ToLower(strings.Join(strings.Fields(plain), " "))
}

func isLoginTitle(title string) bool {
	for _, begin := range loginTitles {
		if rest, begins := strings.CutPrefix(title, begin); begins && endsWord(rest) {
			return true
		}
	}
	for _, word := range loginWords {
		rest, begins := strings.CutPrefix(title, word)
		if begins && (endsPart(rest) || goesOn(rest)) {
			return true
		}
	}
	return strings.Contains(title, "log in or sign up")
}

// endsWord says whether a word ends before rest.
func endsWord(rest string) bool {
	next, _ := utf8.DecodeRuneInString(rest)
	return !isOfWord(next)
}

// endsPart says whether a part of a title ends before rest: at the title's end, or at a sign that
// parts titles.
func endsPart(rest string) bool {
	signs := strings.TrimLeft(rest, " ")
	sign, size := utf8.DecodeRuneInString(signs)
	after, _ := utf8.DecodeRuneInString(signs[size:])
	switch {
	case signs == "":
		return true
	case isOfWord(sign) || strings.ContainsRune(`,("“'’`, sign):
		return false
	}
	return signs != rest || sign != '-' && sign != '.' || !isOfWord(after) ||
		unicode.In(after, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul)
}

func isOfWord(r rune) bool { return unicode.IsLetter(r) || unicode.IsMark(r) || unicode.IsDigit(r) }

// goesOn says whether rest begins with one of loginLinks.
func goesOn(rest string) bool {
	words, spaced := strings.CutPrefix(rest, " ")
	word, _, _ := strings.Cut(words, " ")
	return spaced && loginLinks[word]
}

func hasPassword(body []byte) bool {
	for _, field := range []string{`type="password"`, `type='password'`, `type=password`} {
		if bytes.Contains(body, []byte(field)) {
			return true
		}
	}
	return false
}
