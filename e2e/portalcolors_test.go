package e2e

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"shoal.dev/shoal/testkit/browser"
)

// leastContrast is what readable text has to what is behind it (WCAG 2.2, 1.4.3), of any size.
const leastContrast = 4.5

// faintTexts lists the visible texts of a page that have less contrast, as they are drawn: what is
// translucent lets what is behind it through. Texts of disabled controls need none.
const faintTexts = `((least) => {
	const colors = said => said.match(/^rgba?\(([\d., ]+)\)$/)[1].split(",").map(Number);
	const over = ([r, g, b, a = 1], [x, y, z]) => [r * a + x * (1 - a), g * a + y * (1 - a),
		b * a + z * (1 - a)];
	const light = color => color.map(c => c / 255).map(c => c <= .04045 ? c / 12.92 :
		((c + .055) / 1.055) ** 2.4).reduce((sum, c, i) => sum + c * [.2126, .7152, .0722][i], 0);
	const canvas = document.documentElement.appendChild(document.createElement("i"));
	canvas.style.backgroundColor = "Canvas";
	const ground = colors(getComputedStyle(canvas).backgroundColor);
	canvas.remove();
	const behind = of => of ? over(colors(getComputedStyle(of).backgroundColor),
		behind(of.parentElement)) : ground;
	const seen = of => of.checkVisibility({ visibilityProperty: true, opacityProperty: true }) &&
		!of.closest(".unseen, .skip, :disabled, [aria-disabled=true], option");
	const opacity = of => of ? getComputedStyle(of).opacity * opacity(of.parentElement) : 1;
	const found = [];
	let texts = 0;
	const judge = (of, text, style) => {
		const back = behind(of), [r, g, b, a = 1] = colors(style.color);
		const [x, y] = [back, over([r, g, b, a * opacity(of)], back)].map(light);
		const ratio = (Math.max(x, y) + .05) / (Math.min(x, y) + .05);
		texts++;
		if (ratio < least) { found.push(ratio.toFixed(2) + ": " + text.trim().slice(0, 60)); }
	};
	const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
	for (let node; node = walk.nextNode();) {
		const of = node.parentElement;
		if (node.data.trim() && seen(of)) { judge(of, node.data, getComputedStyle(of)); }
	}
	for (const field of document.querySelectorAll("input, textarea, select")) {
		const text = field.value || field.placeholder || "";
		if (seen(field) && text) { judge(field, text, getComputedStyle(field,
			field.value ? undefined : "::placeholder")); }
	}
	return texts ? found : ["no text is seen"];
})`

// reads checks the contrast of what the page shows.
func (p *person) reads(name string) {
	p.t.Helper()
	for _, text := range p.faint() {
		p.t.Errorf("%s: too little contrast, %s", name, text)
	}
}

func (p *person) faint() []string {
	p.t.Helper()
	return asks[[]string](p, faintTexts+fmt.Sprintf("(%g)", leastContrast))
}

// TestFaintTextsAreSeen: text without contrast is found, whatever takes the contrast away.
func TestFaintTextsAreSeen(t *testing.T) {
	t.Parallel()
	p := newPerson(t, browser.Path(t), "")
	for html, want := range map[string]string{
		"black on white":                                                           "",
		"<p style='color:#767676'>enough":                                          "",
		"<p style='color:#787878'>gray":                                            "gray",
		"<p style='opacity:.5'>translucent":                                        "translucent",
		"<div style='background:#333'><p>on dark</div>":                            "on dark",
		"<div style='background:#000a'><p>on shade</div>":                          "on shade",
		"<input value=field style='color:#999'>":                                   "field",
		"<input placeholder=hint>":                                                 "",
		"<p>seen<p style='color:#fff;visibility:hidden'>unseen":                    "",
		"<meta name=color-scheme content=dark><p style='color:#000'>black on dark": "black on dark",
	} {
		p.do(chromedp.Navigate("data:text/html," + url.PathEscape("<!doctype html>"+html)))
		p.sees(`document.readyState === "complete"`)
		found := strings.Join(p.faint(), "\n")
		if (found == "") != (want == "") || !strings.Contains(found, want) {
			t.Errorf("%s: found is %q, want %q", html, found, want)
		}
	}
}
