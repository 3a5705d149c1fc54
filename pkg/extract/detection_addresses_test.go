package extract

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// The addresses of proposed fields are absolute, wherever a page keeps those of pictures that load
// late. A picture without one address of its own makes no field.
func TestDetectAbsoluteAddresses(t *testing.T) {
	const empty = `src="data:image/gif;base64,R0lGOD"`
	for name, c := range map[string]struct {
		picture string // %d stands for a number
		want    string // the image of the first thing
	}{
		"at once":              {`src="/img/%d.jpg"`, "https://shop.test/img/0.jpg"},
		"data-src":             {empty + ` data-src="/img/%d.jpg"`, "https://shop.test/img/0.jpg"},
		"data-original":        {empty + ` data-original="img/%d.jpg"`, "https://shop.test/a/img/0.jpg"},
		"data-lazy-src":        {empty + ` data-lazy-src="//cdn.test/%d.jpg"`, "https://cdn.test/0.jpg"},
		"data-src, kept empty": {`src="/img/%d.jpg" data-src="data:,"`, "https://shop.test/img/0.jpg"},
		"one of srcset":        {`srcset="/s/%[1]d.jpg 1x" src="/img/%[1]d.jpg"`, "https://shop.test/img/0.jpg"},
		"srcset":               {`srcset="/img/%[1]d.jpg 1x, /img/%[1]d-2.jpg 2x"`, ""},
		"data-srcset":          {empty + ` data-srcset="/img/%[1]d.jpg 1x"`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			picture := func(n int) string { return "<img " + fmt.Sprintf(c.picture, n) + ">" }
			list := `<title>Chairs</title><h1>Chairs</h1>`
			for i := range 9 {
				list += fmt.Sprintf(`<div class="card">%s<h3><a href="../chair/%d">Chair number %d`+
					`</a></h3><p class="price">€ %d.50</p></div>`, picture(i), i, i, 20+i)
			}
			one := `<title>Chair</title><meta property="og:image" content="/og.jpg"><main>` +
				`<h1>Chair</h1><div class="gallery">` + picture(0) + `</div><p class="price">` +
				`€ 20.50</p><button>Add to cart</button></main>`
			for strategy, body := range map[string]string{"list": list, "product": one} {
				checkAddresses(t, strategy, body, c.want)
			}
		})
	}
	checkAddresses(t, "product", `<title>Chair</title><meta property="og:image" `+
		`content="https://cdn.test/og.jpg"><main><h1>Chair</h1><p class="price">€ 20.50</p>`+
		`<button>Add to cart</button></main>`, "https://cdn.test/og.jpg")
}

// checkAddresses checks the addresses in the rows of a strategy's first proposal.
func checkAddresses(t *testing.T, strategy, body, want string) {
	t.Helper()
	for _, p := range proposalsAt(t, "https://shop.test/a/list", "text/html", body) {
		if p.Strategy != strategy {
			continue
		}
		for i, line := range p.SampleData {
			var row map[string]string
			if err := json.Unmarshal(line, &row); err != nil {
				t.Fatal(err)
			}
			if i == 0 && row["image"] != want {
				t.Errorf("%s: the image is %q, want %q", strategy, row["image"], want)
			}
			for name, value := range row {
				if (name == "url" || name == "image") && !strings.HasPrefix(value, "https://") {
					t.Errorf("%s: row %d: %s is %s", strategy, i, name, value)
				}
			}
		}
		return
	}
	t.Errorf("%s is not proposed", strategy)
}

// Addresses in JSON stay as written, in a body and in data that a page embeds (decision 62).
func TestDetectAddressesOfJSON(t *testing.T) {
	body := `{"items":[` + chairs(`{"title":"Chair #","url":"/chair/#","price":"#9.50"}`) + `]}`
	for media, body := range map[string]string{"application/json": body,
		"text/html": `<title>Chairs</title><script>var state=` + body + `</script>`} {
		got := proposalsAt(t, "https://api.shop.test/list", media, body)
		if len(got) == 0 || !strings.Contains(string(got[0].SampleData[4]), `"url":"/chair/4"`) {
			t.Errorf("%s: %+v", media, got)
			continue
		}
		made, err := mustCompile(t, got[0].Scraper.Recipe()).Extract(Page{
			URL: "https://api.shop.test/list", ContentType: media, Body: []byte(body)})
		if err != nil || !strings.Contains(string(made.Rows[4]), `"url":"/chair/4"`) {
			t.Errorf("%s: %s, %v", media, made.Rows, err)
		}
	}
}
