package web

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"golang.org/x/net/html/charset"

	"shoal.dev/shoal/pkg/fault"
)

// story is a page about walls; shop is a page behind a wall that let us through.
const story = "<title>How bot walls work</title><article><p>%s</p></article>"

func shop(script string) string {
	return `<title>Boots</title><script src="` + script +
		`"></script><h1>Boots</h1><p class="price">99.00</p><form><input type="password"></form>`
}

func TestWalls(t *testing.T) {
	long := strings.Repeat("<p>x</p>", maxWall/8)
	for _, test := range []struct {
		name   string
		status int
		body   string
		want   string
	}{
		{"Cloudflare, English", 503, "<title>Just a moment...</title><script " +
			"src='/cdn-cgi/challenge-platform/x.js'>", "Cloudflare"},
		{"Cloudflare, another language", 403,
			"<title>Einen Moment…</title><script>window._cf_chl_opt={}</script><script " +
				"src='/cdn-cgi/challenge-platform/h/b/x.js'>", "Cloudflare"},
		{"Cloudflare, refused", 403,
			`<title>Attention Required! | Cloudflare</title><div id="cf-error-details">`,
			"Cloudflare"},
		{"Cloudflare, a rule", 403,
			`<title>Access denied</title><div id="cf-error-details"><p>shop.example used Cloudflare to restrict access</p>`, "Cloudflare"},
		{"a story about Cloudflare", 200,
			strings.Replace(story, "%s", "<title>Just a moment...</title> is what it says", 1), ""},
		{"a shop with Cloudflare's script", 200,
			shop("/cdn-cgi/challenge-platform/scripts/jsd/main.js"), ""},
		{"a challenge within a large page", 200,
			"<title>Just a moment...</title>/cdn-cgi/challenge-platform/" + long, ""},
		{"a challenge by its title", 200, "<title>Pardon Our Interruption</title><script>x()" +
			"</script><p>Something about your browser made us think you are a bot." + long,
			"challenge"},
		{"a challenge in Chinese", 200, "<title>安全验证</title><script>x()</script>", "challenge"},
		{"a page that lists challenges", 200, "<title>Robot check</title>" +
			strings.Repeat("<a href=x>y</a>", maxWallLinks+1), ""},
		{"a title that begins like a challenge", 200,
			"<title>Robot or human? A film</title><p>x", ""},
		{"a large refusal", 403,
			"<title>Just a moment...</title>/cdn-cgi/challenge-platform/" + long, "Cloudflare"},
		{"Cloudflare's page of another failure", 522,
			`<title>shop.example | 522: Connection timed out</title><div id="cf-error-details">`,
			""},
		{"Akamai, refused", 403, "<HTML><HEAD><TITLE>Access " +
			"Denied</TITLE></HEAD><BODY>Reference&#32;&#35;18&#46;2d351ab8", "Akamai"},
		{"Akamai, refused, newer", 403, "<title>Access Denied</title> " +
			"https://errors.edgesuite.net/18.2d351ab8", "Akamai"},
		{"Akamai, interstitial", 200,
			`<script>xhr.open("POST","/_sec/verify?provider=interstitial");xhr.send(JSON.stringify({"bm-verify":"x"}))</script>`, "Akamai"},
		{"Akamai, challenge", 428,
			`<div id="sec-if-cpt-container"></div><script src="/_sec/cp_challenge/sec-4-4.js">`,
			"Akamai"},
		{"access denied by the site itself", 403, "<title>Access Denied</title><p>You need " +
			"another role.</p>", ""},
		{"a story about Akamai", 200, strings.Replace(story, "%s", "Access Denied, see "+
			"errors.edgesuite.net", 1), ""},
		{"HUMAN", 403, "<script>window._pxAppId='PX1'</script><div id='px-captcha'>", "HUMAN"},
		{"HUMAN, with 200", 200, "<script>window._pxAppId='PX1'</script><div id='px-captcha'>",
			"HUMAN"},
		{"HUMAN, newer", 403, "<script>window['_pxAppId']='PX1'</script><script " +
			"src='https://captcha.px-cdn.net/PX1/captcha.js'>", "HUMAN"},
		{"a shop with HUMAN's script", 200, shop("https://client.px-cdn.net/PX1/main.min.js"), ""},
		{"DataDome", 403, "<script>var dd={'rt':'c'}</script><script " +
			"src='https://ct.captcha-delivery.com/c.js'>", "DataDome"},
		{"DataDome, JSON", 403, `{"url":"https://geo.captcha-delivery.com/captcha/?initialCid=A"}`,
			"DataDome"},
		{"a shop with DataDome's script", 200, shop("https://js.datadome.co/tags.js"), ""},
		{"a shop that names DataDome's address", 200,
			shop("https://geo.captcha-delivery.com/captcha/"), ""},
		{"Imperva", 200, "<iframe src='/_Incapsula_Resource?a=b'>Request unsuccessful. " +
			"Incapsula incident ID: 1-2", "Imperva"},
		{"Imperva, script", 200,
			`<html><head><META NAME="ROBOTS" CONTENT="NOINDEX, NOFOLLOW"></head><script src="/_Incapsula_Resource?SWJIYLWA=719d">`, "Imperva"},
		{"a shop with Imperva's script", 200, shop("/_Incapsula_Resource?SWJIYLWA=719d"), ""},
		{"AWS WAF, captcha", 405,
			`<script>window.gokuProps={"key":"x"}</script><script src="https://a.b.captcha.awswaf.com/x/captcha.js">`, "AWS WAF"},
		{"AWS WAF, challenge", 202,
			`<div id="challenge-container"></div><script>AwsWafIntegration.checkForceRefresh()`,
			"AWS WAF"},
		{"a shop with AWS WAF's script", 200,
			shop("https://a.edge.sdk.awswaf.com/a/b/challenge.js"), ""},
		{"Kasada", 429,
			`<script>window.KPSDK={};KPSDK.now=0</script><script src="/149e9513/fp/ips.js?x=1">`,
			"Kasada"},
		{"a shop with Kasada's script", 200, shop("/149e9513/2d206a39/p.js"), ""},
		{"Sucuri", 403, "<title>Sucuri WebSite Firewall - Access Denied</title>", "Sucuri"},
		{"Sucuri, script", 200,
			"<script>sucuri_cloudproxy_js='';S='x';document.cookie=e(S)</script>", "Sucuri"},
		{"a captcha with 403", 403, `<form><div class="g-recaptcha" data-sitekey="x">`, "captcha"},
		{"a captcha with 429", 429, `<form><div class="h-captcha" data-sitekey="x">`, "captcha"},
		{"a captcha with 503", 503, `<form action="/errors/validateCaptcha"><input name="amzn">`,
			"captcha"},
		{"a shop's own check", 200,
			`<form action="/errors/validateCaptcha"><input type=hidden name="amzn" value="x">`,
			"captcha"},
		{"a search engine's refusal", 429,
			`detected unusual traffic from your computer network <div id="recaptcha" class="g-recaptcha">`, "captcha"},
		{"a contact form with a captcha", 200,
			`<title>Contact</title><form><div class="g-recaptcha" data-sitekey="x">`, ""},
		{"a missing page with a captcha", 404, `<form><div class="g-recaptcha" data-sitekey="x">`,
			""},
		{"a plain refusal", 403, "<h1>Forbidden</h1>", ""},
		{"nothing", 200, "", ""},
	} {
		if got := recogniseWall(test.status, []byte(test.body), nil); got != test.want {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
}

func TestLoginWalls(t *testing.T) {
	const field = `<form method=post><input name=u><input type="password" name=p></form>`
	for _, test := range []struct {
		name         string
		asked, final string
		body         string
		want         bool
	}{
		{"led to a login page", "/item/7", "/login?next=/item/7", "<title>Shop</title>" + field,
			true},
		{"led to a login page of a framework", "/item/7", "/users/sign_in",
			"<title>Shop</title>" + field, true},
		{"led to a page about logins", "/item/7", "/login",
			"<title>Shop</title><p>Ask us for a password.</p>", false},
		{"a login in its place", "/item/7", "/item/7", "<title>Log in | Shop</title>" + field,
			true},
		{"a login in its place, in German", "/item/7", "/item/7",
			"<TITLE>Anmelden – Laden</TITLE><input type='password'>", true},
		{"a login in its place, in Japanese", "/item/7", "/item/7",
			"<title>\nログイン</title><input type=password>", true},
		{"a network", "/someone", "/someone", "<title>Network – log in or sign up</title>" + field,
			true},
		{"the login page was asked for", "/login", "/login", "<title>Log in</title>" + field,
			false},
		{"a shop with a login in its header", "/item/7", "/item/7", "<title>Boots</title>" + field,
			false},
		{"led to the shop itself", "/item/7", "/shop/item/7", "<title>Boots</title>" + field,
			false},
		{"a story", "/item/7", "/item/7", "<title>Login pages, a history</title><p>They " +
			"came late.</p>", false},
		{"a word that only begins so", "/item/7", "/item/7",
			"<title>Loginova, paintings</title>" + field, false},
		{"a title that never ends", "/item/7", "/item/7", "<title>Log in" + field, false},
	} {
		page := &Page{Final: "http://a.example" + test.final,
			Body: []byte(test.body)}
		if test.final != test.asked {
			page.Hops = 1
		}
		if got := isLoginWall("http://a.example"+test.asked, page); got != test.want {
			t.Errorf("%s: %v", test.name, got)
		}
	}
}

// A title is a login page's only where a login is its whole first part. Shops with a password field
// in a pop-up sell things whose names begin with the same letters.
func TestLoginTitles(t *testing.T) {
	const field = `<form method=post><input type="password" name=p></form>`
	for want, titles := range map[bool][]string{
		true: {"Log in", "LOGIN", "Log In &lsaquo; Blog &#8212; WordPress", "Sign in · Forge",
			"Login/Register", "Login & Register", "Sign in.", "Log in to Shop",
			"Login to your account", "Sign in with a passkey", "Sign in or register",
			"Login and Register", "Sign in and continue", "Login Form", "Sign in required",
			"Please sign in", "Login required", "Anmelden bei Laden", "Anmelden\n  |\n Laden",
			"Anmelden und registrieren", "Anmelden zum Kundenkonto", "Anmeldung | Laden",
			"Anmeldung oder Registrierung", "Connexion", "Connexion - Boutique",
			"Connexion à mon compte", "Connexion à votre espace client", "Connectez-vous !",
			"Se connecter à Boutique", "Iniciar sesi&oacute;n | Tienda",
			"Inicia sesión para continuar", "Entrar", "Entrar | Loja", "Entrar na sua conta",
			"Entrar ou cadastrar-se", "Accedi al tuo account", "Accedi all'area clienti",
			"Logga in på Butik", "Logga in för att fortsätta", "Zaloguj się do sklepu",
			"Zaloguj się, aby kontynuować", "Logowanie i rejestracja", "Giriş", "Giriş – Dükkan",
			"Giriş yap | Dükkan", "Giriş yap veya üye ol", "Přihlášení uživatele", "Вход",
			"Вход | Магазин", "Вход: магазин", "Вход и регистрация", "Войти на сайт",
			"Войти или зарегистрироваться", "Вход в личный кабинет — Магазин", "Войти", "ログイン",
			"ログイン｜ショップ", "ログイン - ショップ", "ログイン・会員登録", "ログインしてください",
			"ログインページ", "ログイン画面 | ショップ", "登录", "登录_商店", "登录-商店", "登录/注册", "登录注册",
			"登录页面", "登入 | 商店", "로그인", "로그인 : 상점", "로그인 페이지", "Đăng nhập",
			"Đăng nhập vào Cửa hàng"},
		false: {"Входные двери купить в Москве", "Входящие", "Вход в пещеру", "Войти в историю",
			"Giriş kapısı", "Girişimcilik", "Giriş\u0307", "Entrar en la universidad",
			"Entrarão", "Connexion Internet", "Connexionübersicht", "ログインボーナス一覧", "ログイン特典",
			"登录奖励一览", "登入獎勵", "로그인보너스 목록", "로그인 보너스", "Anmeldungübersicht",
			"Anmeldung zum Kurs", "Login-Formulare", "Login.example", "Login2", "Sign into history",
			"Login in Python", "Login, a novel", "Login’s history", "Sign in a Wooden Frame",
			"Log in a Box – Fireplace Set", "Sign in No Time", "Accedité", "Logga inåt",
			"Přihlášeníčko"},
	} {
		for _, title := range titles {
			page := &Page{Final: "http://a.example/item/7",
				Body: []byte("<title>" + title + "</title>" + field)}
			if got := isLoginWall(page.Final, page); got != want {
				t.Errorf("%q is a login wall: %v, want %v", title, got, want)
			}
		}
	}
}

func TestWallsAreFailures(t *testing.T) {
	client := web(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/cloudflare":
			w.Header().Set("cf-mitigated", "challenge")
		case "/aws":
			w.Header().Set("x-amzn-waf-action", "challenge")
			w.WriteHeader(http.StatusAccepted)
		case "/kasada":
			w.Header().Set("x-kpsdk-ct", "1")
			w.Header().Set("Retry-After", "7")
			w.WriteHeader(http.StatusTooManyRequests)
		case "/datadome":
			w.Header().Set("x-dd-b", "1")
			w.WriteHeader(http.StatusForbidden)
		case "/private":
			http.Redirect(w, r, "/signin", http.StatusFound)
		case "/signin":
			_, _ = w.Write([]byte(`<input type="password">`))
		}
	})
	transport := newTransport(client, Config{}, nil)
	for path, want := range map[string]struct{ status, after int }{
		"/cloudflare": {200, 0}, "/aws": {202, 0}, "/kasada": {429, 7}, "/datadome": {403, 0},
		"/private": {200, 0},
	} {
		page, err := transport.Fetch(t.Context(), Request{URL: "http://a.example" + path})
		failed := failureOf(t, page, err)
		if failed.Code != fault.PageBlocked || failed.Status != want.status || failed.Retry ||
			int(failed.RetryAfter.Seconds()) != want.after {
			t.Errorf("%s: %v, status %d, retry %v after %s", path, err, failed.Status, failed.Retry,
				failed.RetryAfter)
		}
	}
	page, err := transport.Fetch(t.Context(), Request{URL: "http://a.example/signin"})
	if err != nil {
		t.Fatal(err)
	}
	page.Release()
}

// Walls are recognized in the encodings of their languages, declared or not.
func TestWallsInOtherEncodings(t *testing.T) {
	const field = `<form><input type="password"></form>`
	asks := map[string]string{}
	for _, test := range []struct{ encoding, title, rest string }{
		{"windows-1251", "Вы не робот?", "<p>Подтвердите, что запросы отправляли вы"},
		{"koi8-r", "Проверка браузера", "<p>Подождите несколько секунд"},
		{"gbk", "安全验证", "<p>请完成下方的验证后继续访问"},
		{"shift_jis", "アクセスが拒否されました", "<p>このページを表示する権限がありません"},
		{"windows-1251", "Вход", field + "<p>Введите логин и пароль"},
		{"gbk", "登录", field + "<p>请输入用户名和密码"},
		{"shift_jis", "ログイン", field + "<p>パスワードを入力してください"},
		{"iso-8859-1", "Iniciar sesión", field + "<p>Contraseña"},
	} {
		for _, meta := range []string{"", "<meta charset=" + test.encoding + ">"} {
			encoding, _ := charset.Lookup(test.encoding)
			body, err := encoding.NewEncoder().String(meta + "<title>" + test.title + "</title>" +
				test.rest)
			if err != nil {
				t.Fatal(err)
			}
			asks[fmt.Sprint("/", len(asks))] = body
		}
	}
	client := web(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(w, asks[r.URL.Path])
	})
	transport := newTransport(client, Config{}, nil)
	for path, body := range asks {
		page, err := transport.Fetch(t.Context(), Request{URL: "http://a.example" + path})
		if fault.CodeOf(err) != fault.PageBlocked {
			t.Errorf("%q: %v", body, err)
		}
		if page != nil {
			page.Release()
		}
	}
}
