package aiconf

import (
	"fmt"
	"testing"

	"shoal.dev/shoal/pkg/extract/internal/page"
)

// Shop markup for prices: crossed-out prices beside current ones, and copies for screen readers.
// Sizes, stock and unit prices are in the same element.
func TestShopMarkup(t *testing.T) {
	maker := compile(t, `{"type":"object","properties":{"name":{"type":"string"},
		"price":{"type":"number"},"originalPrice":{"type":"number"},"currency":{"type":"string"}}}`)
	for price, want := range map[string]string{
		`<span class="price"><del>$20</del> <ins>$15</ins></span>`:                                   `"price":15,"originalPrice":20,"currency":"USD"`,
		`<p class="price"><del><bdi>20,00&nbsp;€</bdi></del> <ins><bdi>15,00&nbsp;€</bdi></ins></p>`: `"price":15.00,"originalPrice":20.00,"currency":"EUR"`,
		`<p class="price"><del aria-hidden="true"><bdi>$20.00</bdi></del> <span class="screen-reader-text">Original price was: $20.00.</span><ins aria-hidden="true"><bdi>$15.00</bdi></ins><span class="screen-reader-text">Current price is: $15.00.</span></p>`: `"price":15.00,"originalPrice":20.00,"currency":"USD"`,
		`<div class="price"><s>$20</s> $15</div>`:                                                        `"price":15,"originalPrice":20,"currency":"USD"`,
		`<div class="price">$15 <s>$20</s></div>`:                                                        `"price":15,"originalPrice":20,"currency":"USD"`,
		`<div class="price"><span style="text-decoration:line-through">$20</span> $15</div>`:             `"price":15,"originalPrice":20,"currency":"USD"`,
		`<div class="price"><span class="price-old">$20</span> <span class="price-new">$15</span></div>`: `"price":15,"originalPrice":20,"currency":"USD"`,
		`<span class="a-price"><span class="a-offscreen">$15.00</span><span aria-hidden="true"><span class="a-price-symbol">$</span><span class="a-price-whole">15<span class="a-price-decimal">.</span></span><span class="a-price-fraction">00</span></span></span>`: `"price":15.00,"currency":"USD"`,
		`<span class="a-price"><span class="a-offscreen">$1,215.00</span><span aria-hidden="true">$1,215<sup>00</sup></span></span>`:                                                                                                                                   `"price":1215.00,"currency":"USD"`,
		`<span class="price">Size 42 - $15</span>`:                                                                       `"price":15,"currency":"USD"`,
		`<span class="price">$15 (2 left)</span>`:                                                                        `"price":15,"currency":"USD"`,
		`<span class="price">€12 / 100ml</span>`:                                                                         `"price":12,"currency":"EUR"`,
		`<span class="price">€12 <small>(€120/l)</small></span>`:                                                         `"price":12,"currency":"EUR"`,
		`<span class="price">Now $15, was $20</span>`:                                                                    `"price":15,"currency":"USD"`,
		`<div class="price"><span aria-hidden="true">$ 15 <sup>99</sup></span><span class="sr-only">$15.99</span></div>`: `"price":15.99,"currency":"USD"`,
		`<span class="price">3 payments of $5</span>`:                                                                    ``,
		`<span class="price">€12 – €20 (Size 40 – 46)</span>`:                                                            `"price":12,"currency":"EUR"`,
		`<span class="price">2 for $15</span>`:                                                                           ``,
	} {
		_, rows := read(t, maker,
			page.Page{URL: "https://shop.test/", ContentType: "text/html",
				Body: []byte(`<html lang=en><title>Blue mug</title>` +
					`<body><main><h1>Blue mug</h1><div class="product">` +
					price +
					`<p>A nice mug of fine clay.</p></div></main>`)}, unavailable)
		if want != "" {
			want = `{"name":"Blue mug",` + want + `}`
		}
		if got := fmt.Sprintf("%s", rows); got != "["+want+"]" {
			t.Errorf("%s:\n\t%s, want %s", price, got, want)
		}
	}
}
