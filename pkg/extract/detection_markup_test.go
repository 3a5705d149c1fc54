package extract

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"text/template"
)

var (
	number   = regexp.MustCompile(`[0-9]+([.,][0-9]+)?`)
	currency = regexp.MustCompile(`€|kr`)
)

// itemFuncs are what templates of items may call.
var itemFuncs = template.FuncMap{
	"rest": func(n int) int { return n % 2 },
	"number": func(price string) string {
		return strings.ReplaceAll(number.FindString(price), ",", ".")
	},
	"symbol": func(price string) string {
		return currency.ReplaceAllString(price,
			`<span class="woocommerce-Price-currencySymbol">$0</span>`)
	},
}

// moreShops imitates what shop systems write into and around prices beyond the prices themselves,
// and how other sites strike prices.
var moreShops = []struct{ name, item, wrap string }{
	{"WooCommerce, signs apart", `<li class="product type-product post-{{.N}} {{if .Before}}sale{{end}}"><a href="{{.URL}}" class="woocommerce-LoopProduct-link">{{if .Before}}<span class="onsale">Sale!</span>{{end}}<img src="{{.Image}}" alt=""><h2 class="woocommerce-loop-product__title">{{.Title}}</h2>
<span class="price">{{if .Before}}<del aria-hidden="true"><span class="woocommerce-Price-amount amount"><bdi>{{symbol .Before}}</bdi></span></del> <ins aria-hidden="true"><span class="woocommerce-Price-amount amount"><bdi>{{symbol .Price}}</bdi></span></ins>{{else}}<span class="woocommerce-Price-amount amount"><bdi>{{symbol .Price}}</bdi></span>{{end}}</span></a></li>`,
		`<ul class="products columns-4">%s</ul>`},
	{"Shopify, two headings and a unit price", `<li class="grid__item"><div class="card-wrapper product-card-wrapper"><div class="card card--standard"><div class="card__inner"><div class="media"><img src="{{.Image}}" alt="{{.Title}}"></div><div class="card__content"><div class="card__information"><h3 class="card__heading"><a href="{{.URL}}" class="full-unstyled-link">{{.Title}}</a></h3></div><div class="card__badge bottom left">{{if .Before}}<span class="badge">Sale</span>{{end}}</div></div></div>
<div class="card__content"><div class="card__information"><h3 class="card__heading h5"><a href="{{.URL}}" class="full-unstyled-link">{{.Title}}</a></h3><div class="card-information"><div class="price {{if .Before}}price--on-sale{{end}}"><div class="price__container"><div class="price__regular"><span class="visually-hidden">Regular price</span><span class="price-item price-item--regular">{{.Price}}</span></div><div class="price__sale"><span class="visually-hidden">Regular price</span><span><s class="price-item price-item--regular">{{.Before}}</s></span><span class="visually-hidden">Sale price</span><span class="price-item price-item--sale price-item--last">{{.Price}}</span></div><small class="unit-price caption hidden"><span class="visually-hidden">Unit price</span><span class="price-item price-item--last"><span></span><span aria-hidden="true">/</span><span class="visually-hidden">&nbsp;per&nbsp;</span><span></span></span></small></div></div></div></div></div></div></div></li>`,
		`<ul id="product-grid" class="grid product-grid">%s</ul>`},
	{"Magento, amounts in attributes", `<li class="item product product-item"><div class="product-item-info" data-container="product-grid"><a href="{{.URL}}" class="product photo product-item-photo"><img class="product-image-photo" src="{{.Image}}" alt="{{.Title}}"></a><div class="product details product-item-details"><strong class="product name product-item-name"><a class="product-item-link" href="{{.URL}}">{{.Title}}</a></strong>
<div class="price-box price-final_price" data-product-id="{{.N}}">{{if .Before}}<span class="special-price"><span class="price-container price-final_price tax weee"><span class="price-label">Special Price</span><span id="product-price-{{.N}}" data-price-amount="{{number .Price}}" data-price-type="finalPrice" class="price-wrapper"><span class="price">{{.Price}}</span></span></span></span><span class="old-price"><span class="price-container price-final_price tax weee"><span class="price-label">Regular Price</span><span id="old-price-{{.N}}" data-price-amount="{{number .Before}}" data-price-type="oldPrice" class="price-wrapper"><span class="price">{{.Before}}</span></span></span></span>{{else}}<span class="price-container price-final_price tax weee"><span id="product-price-{{.N}}" data-price-amount="{{number .Price}}" data-price-type="finalPrice" class="price-wrapper"><span class="price">{{.Price}}</span></span></span>{{end}}</div></div></div></li>`,
		`<div class="products wrapper grid products-grid"><ol class="products list items product-items">%s</ol></div>`},
	{"PrestaShop, an amount off", `<div class="product col-xs-6"><article class="product-miniature js-product-miniature" data-id-product="{{.N}}"><div class="thumbnail-container"><a href="{{.URL}}" class="thumbnail product-thumbnail"><img src="{{.Image}}" alt="{{.Title}}"></a>
<div class="product-description"><h2 class="h3 product-title"><a href="{{.URL}}">{{.Title}}</a></h2><div class="product-price-and-shipping">{{if .Before}}<span class="regular-price" aria-label="Regular price">{{.Before}}</span><span class="discount-amount discount-product">-€5.00</span>{{end}}<span class="price" aria-label="Price">{{.Price}}</span></div></div><ul class="product-flags js-product-flags">{{if .Before}}<li class="product-flag discount">-€5.00</li>{{end}}<li class="product-flag new">New</li></ul></div></article></div>`,
		`<section id="products"><div class="products row">%s</div></section>`},
	{"Shopware, a base price", `<div class="cms-listing-col col-sm-6"><div class="card product-box box-standard"><div class="card-body"><div class="product-image-wrapper"><a href="{{.URL}}" class="product-image-link"><img src="{{.Image}}" class="product-image" alt=""></a></div><div class="product-info"><a href="{{.URL}}" class="product-name">{{.Title}}</a><div class="product-description">{{.Text}}</div>
<div class="product-price-info"><p class="product-price-unit"><span class="product-unit-label">Content:</span><span class="price-unit-content">0.5 kg</span><span class="price-unit-reference">(€3.90* / 1 kg)</span></p><div class="product-price-wrapper"><span class="product-price {{if .Before}}with-list-price{{end}}">{{.Price}}{{if .Before}}<span class="list-price"><span class="list-price-price">{{.Before}}</span><span class="list-price-percentage">(20% saved)</span></span>{{end}}</span></div></div></div></div></div></div>`,
		`<div class="row cms-listing-row">%s</div>`},
	{"OpenCart, a price before tax", `<div class="col mb-3"><form method="post"><div class="product-thumb"><div class="image"><a href="{{.URL}}"><img src="{{.Image}}" alt="" class="img-fluid"></a></div><div class="content"><div class="description"><h4><a href="{{.URL}}">{{.Title}}</a></h4><p>{{.Text}}</p><div class="price"><span class="price-new">{{.Price}}</span> {{if .Before}}<span class="price-old">{{.Before}}</span>{{end}} <span class="price-tax">Ex Tax: €{{.N}}.10</span></div></div></div></div></form></div>`,
		`<div id="product-list" class="row">%s</div>`},
	{"BigCommerce, prices in labels", `<li class="product"><article class="card" data-entity-id="{{.N}}" data-product-price="{{number .Price}}"><figure class="card-figure"><a href="{{.URL}}" class="card-figure__link" aria-label="{{.Title}}, {{.Price}}"><img src="{{.Image}}" alt="" class="card-image"></a></figure><div class="card-body"><h3 class="card-title"><a aria-label="{{.Title}}, {{.Price}}" href="{{.URL}}">{{.Title}}</a></h3><div class="card-text" data-test-info-type="price">
<div class="price-section price-section--withoutTax non-sale-price--withoutTax" {{if not .Before}}style="display: none;"{{end}}><span>Was:</span><span data-product-non-sale-price-without-tax class="price price--non-sale">{{.Before}}</span></div><div class="price-section price-section--withoutTax"><span class="price-now-label" style="display:none">Now:</span><span data-product-price-without-tax class="price price--withoutTax">{{.Price}}</span></div></div></div></article></li>`,
		`<ul class="productGrid">%s</ul>`},
	{"struck by a utility class", `<div class="tile"><a href="{{.URL}}"><img src="{{.Image}}"><h3>{{.Title}}</h3></a><div class="flex">{{if .Before}}<span class="text-gray-400 line-through">{{.Before}}</span>{{end}} <span class="font-bold">{{.Price}}</span></div></div>`,
		`<div class="tiles">%s</div>`},
	{"struck by a utility class alone", `<div class="tile"><a href="{{.URL}}"><img src="{{.Image}}"><h3>{{.Title}}</h3></a><div class="price"><span>{{.Price}}</span> {{if .Before}}<span class="text-decoration-line-through">{{.Before}}</span>{{end}}</div></div>`,
		`<div class="tiles">%s</div>`},
	{"struck by a style", `<div class="tile"><a href="{{.URL}}"><img src="{{.Image}}"><h3>{{.Title}}</h3></a><div class="x">{{if .Before}}<span style="color: gray; text-decoration: line-through">{{.Before}}</span>{{end}} <span>{{.Price}}</span></div></div>`,
		`<div class="tiles">%s</div>`},
	{"what is saved, beside the price", `<div class="tile"><a href="{{.URL}}"><img src="{{.Image}}"><h3>{{.Title}}</h3></a><div class="price-and-shipping">{{if .Before}}<s>{{.Before}}</s> <span>Save €{{.N}}.00</span>{{end}} <b>{{.Price}}</b></div></div>`,
		`<div class="tiles">%s</div>`},
	{"a member's price first", `<div class="tile"><a href="{{.URL}}"><img src="{{.Image}}"><h3>{{.Title}}</h3></a><div class="box"><span class="club-price">Club €{{.N}}.10</span>{{if .Before}}<del>{{.Before}}</del>{{end}}<span class="price">{{.Price}}</span></div></div>`,
		`<div class="tiles">%s</div>`},
	{"a regular and a unit price", `<div class="tile"><a href="{{.URL}}"><img src="{{.Image}}"><h3>{{.Title}}</h3></a><div class="box">{{if .Before}}<del class="old-price">{{.Before}}</del>{{end}}<span class="regular-price">{{.Price}}</span><span class="unit-price">€{{.N}}.10 / kg</span></div></div>`,
		`<div class="tiles">%s</div>`},
}

// Prices are found in each way that shops of a country write them, with or without a currency.
func TestDetectNotationsOfPrices(t *testing.T) {
	whole := func(price string) string {
		price, _, _ = strings.Cut(strings.TrimPrefix(price, "€"), ".")
		return price
	}
	for notation, write := range map[string]func(string) string{
		"110,01 €": func(price string) string {
			return strings.ReplaceAll(strings.TrimPrefix(price, "€"), ".", ",") + " €"
		},
		"110 kr":   func(price string) string { return whole(price) + " kr" },
		"110,-":    func(price string) string { return whole(price) + ",-" },
		"110:-":    func(price string) string { return whole(price) + ":-" },
		"ab 110,–": func(price string) string { return "ab " + whole(price) + ",–" },
	} {
		for _, shop := range slices.Concat(shops, moreShops) {
			t.Run(notation+"/"+shop.name, func(t *testing.T) {
				list := onSale(sales["some"])
				for i := range list {
					list[i].Price = write(list[i].Price)
					if list[i].Before != "" {
						list[i].Before = write(list[i].Before)
					}
				}
				checkPrices(t, render(t, shop.item, shop.wrap, list), list)
			})
		}
	}
}
