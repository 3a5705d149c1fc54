package extract

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"shoal.dev/shoal/pkg/model"
)

// shops imitates how the common shop systems mark up list items, with texts of our own.
var shops = []struct{ name, item, wrap string }{
	{"WooCommerce", `<li class="product type-product post-{{.N}} status-publish instock {{if .Before}}sale{{end}} product-type-simple">
<a href="{{.URL}}" class="woocommerce-LoopProduct-link woocommerce-loop-product__link">{{if .Before}}<span class="onsale">Sale!</span>{{end}}<img src="{{.Image}}" alt="">
<h2 class="woocommerce-loop-product__title">{{.Title}}</h2>
<span class="price">{{if .Before}}<del aria-hidden="true"><span class="woocommerce-Price-amount amount"><bdi>{{.Before}}</bdi></span></del> <span class="screen-reader-text">Original price was: {{.Before}}.</span><ins aria-hidden="true"><span class="woocommerce-Price-amount amount"><bdi>{{.Price}}</bdi></span></ins><span class="screen-reader-text">Current price is: {{.Price}}.</span>{{else}}<span class="woocommerce-Price-amount amount"><bdi>{{.Price}}</bdi></span>{{end}}</span></a>
<a href="?add-to-cart={{.N}}" class="button product_type_simple add_to_cart_button">Add to cart</a></li>`,
		`<ul class="products columns-4">%s</ul>`},
	{"Shopify", `<li class="grid__item"><div class="card-wrapper product-card-wrapper"><div class="card card--standard"><div class="card__inner"><div class="card__media"><img src="{{.Image}}" alt=""></div></div>
<div class="card__content"><div class="card__information"><h3 class="card__heading h5"><a href="{{.URL}}" class="full-unstyled-link">{{.Title}}</a></h3>
<div class="card-information"><div class="price {{if .Before}}price--on-sale{{end}}"><div class="price__container">
<div class="price__regular"><span class="visually-hidden visually-hidden--inline">Regular price</span><span class="price-item price-item--regular">{{.Price}}</span></div>
<div class="price__sale"><span class="visually-hidden visually-hidden--inline">Regular price</span><span><s class="price-item price-item--regular">{{.Before}}</s></span><span class="visually-hidden visually-hidden--inline">Sale price</span><span class="price-item price-item--sale price-item--last">{{.Price}}</span></div>
</div></div></div></div></div></div></div></li>`,
		`<ul id="product-grid" class="grid product-grid grid--2-col-tablet-down">%s</ul>`},
	{"Magento", `<li class="item product product-item"><div class="product-item-info"><a href="{{.URL}}" class="product photo product-item-photo"><img class="product-image-photo" src="{{.Image}}" alt=""></a>
<div class="product details product-item-details"><strong class="product name product-item-name"><a class="product-item-link" href="{{.URL}}">{{.Title}}</a></strong>
<div class="price-box price-final_price">{{if .Before}}<span class="special-price"><span class="price-container price-final_price"><span class="price-label">Special Price</span><span class="price-wrapper"><span class="price">{{.Price}}</span></span></span></span>
<span class="old-price"><span class="price-container price-final_price"><span class="price-label">Regular Price</span><span class="price-wrapper"><span class="price">{{.Before}}</span></span></span></span>{{else}}<span class="price-container price-final_price"><span class="price-wrapper"><span class="price">{{.Price}}</span></span></span>{{end}}</div></div></div></li>`,
		`<div class="products wrapper grid products-grid"><ol class="products list items product-items">%s</ol></div>`},
	{"Magento, first version", `<li class="item"><a href="{{.URL}}" class="product-image"><img src="{{.Image}}" alt=""></a><h2 class="product-name"><a href="{{.URL}}">{{.Title}}</a></h2>
<div class="price-box">{{if .Before}}<p class="old-price"><span class="price-label">Regular Price:</span> <span class="price" id="old-price-{{.N}}">{{.Before}}</span></p><p class="special-price"><span class="price-label">Special Price</span> <span class="price" id="product-price-{{.N}}">{{.Price}}</span></p>{{else}}<span class="regular-price" id="product-price-{{.N}}"><span class="price">{{.Price}}</span></span>{{end}}</div></li>`,
		`<div class="category-products"><ul class="products-grid">%s</ul></div>`},
	{"PrestaShop", `<article class="product-miniature js-product-miniature" data-id-product="{{.N}}"><div class="thumbnail-container"><a href="{{.URL}}" class="thumbnail product-thumbnail"><img src="{{.Image}}" alt=""></a>
<div class="product-description"><h2 class="h3 product-title"><a href="{{.URL}}">{{.Title}}</a></h2><div class="product-price-and-shipping">{{if .Before}}<span class="regular-price" aria-label="Regular price">{{.Before}}</span><span class="discount-percentage discount-product">-20%</span>{{end}}<span class="price" aria-label="Price">{{.Price}}</span></div></div></div></article>`,
		`<section id="products"><div class="products row">%s</div></section>`},
	{"Shopware", `<div class="cms-listing-col col-sm-6 col-lg-4"><div class="card product-box box-standard"><div class="card-body"><div class="product-image-wrapper"><a href="{{.URL}}" class="product-image-link"><img src="{{.Image}}" class="product-image is-standard" alt=""></a></div>
<div class="product-info"><a href="{{.URL}}" class="product-name">{{.Title}}</a><div class="product-price-info"><div class="product-price-wrapper"><span class="product-price {{if .Before}}with-list-price{{end}}"> {{.Price}} {{if .Before}}<span class="list-price"><span class="list-price-price">{{.Before}}</span><span class="list-price-percentage">(20% saved)</span></span>{{end}}</span></div></div></div></div></div></div>`,
		`<div class="row cms-listing-row">%s</div>`},
	{"OpenCart", `<div class="product-layout product-grid col-lg-4"><div class="product-thumb"><div class="image"><a href="{{.URL}}"><img src="{{.Image}}" alt="" class="img-responsive"></a></div><div><div class="caption"><h4><a href="{{.URL}}">{{.Title}}</a></h4><p>{{.Text}}</p>
<p class="price">{{if .Before}}<span class="price-new">{{.Price}}</span> <span class="price-old">{{.Before}}</span>{{else}}{{.Price}}{{end}} <span class="price-tax">Ex Tax: €1.00</span></p></div><div class="button-group"><button type="button"><span>Add to Cart</span></button></div></div></div></div>`,
		`<div id="content"><div class="row">%s</div></div>`},
	{"BigCommerce", `<li class="product"><article class="card" data-entity-id="{{.N}}"><figure class="card-figure"><a href="{{.URL}}" class="card-figure__link"><div class="card-img-container"><img src="{{.Image}}" alt="" class="card-image"></div></a></figure>
<div class="card-body"><h3 class="card-title"><a href="{{.URL}}">{{.Title}}</a></h3><div class="card-text" data-test-info-type="price">
<div class="price-section price-section--withoutTax rrp-price--withoutTax" style="display: none;"><span>MSRP:</span><span class="price price--rrp"></span></div>
<div class="price-section price-section--withoutTax non-sale-price--withoutTax"><span>Was:</span><span class="price price--non-sale">{{.Before}}</span></div>
<div class="price-section price-section--withoutTax"><span class="price-label"></span><span class="price price--withoutTax">{{.Price}}</span></div></div></div></article></li>`,
		`<ul class="productGrid">%s</ul>`},
	{"Squarespace", `<div class="grid-item" data-item-id="{{.N}}"><a class="grid-item-link" href="{{.URL}}"></a><figure class="grid-image"><img class="grid-item-image" data-src="{{.Image}}" alt=""></figure>
<section class="grid-meta-wrapper"><div class="grid-main-meta"><div class="grid-title">{{.Title}}</div><div class="grid-prices"><div class="product-price">{{if .Before}}<span class="visually-hidden v6-visually-hidden">Sale Price:</span><span class="sale-price">{{.Price}}</span><span class="visually-hidden v6-visually-hidden">Original Price:</span><span class="original-price">{{.Before}}</span>{{else}}{{.Price}}{{end}}</div></div></div></section></div>`,
		`<div class="products-flex-container"><div class="list-grid">%s</div></div>`},
	{"one place for both", `<div class="tile"><a class="tile-name" href="{{.URL}}"><img src="{{.Image}}">{{.Title}}</a>{{if .Before}}<span class="regular">{{.Before}}</span><span class="reduced">{{.Price}}</span>{{else}}<span class="regular">{{.Price}}</span>{{end}}</div>`,
		`<div class="tiles">%s</div>`},
}

// sales are the ways in which items of a list may be on sale.
var sales = map[string]func(i int) bool{
	"none": func(int) bool { return false },
	"some": func(i int) bool { return i%3 == 1 },
	"all":  func(int) bool { return true },
}

// onSale returns things of which those that on names are on sale.
func onSale(on func(i int) bool) []thing {
	list := things(1)
	for i := range list {
		list[i].Before = ""
		if on(i) {
			list[i].Before = "€" + "9" + strings.TrimPrefix(list[i].Price, "€")
		}
	}
	return list
}

// Sale and regular prices of a list come out as price and listPrice, never swapped or lost, however
// many items are on sale. This holds for the page itself and for other pages of the site.
func TestDetectPricesOfShops(t *testing.T) {
	for _, shop := range slices.Concat(shops, moreShops) {
		for many, on := range sales {
			t.Run(shop.name+"/"+many, func(t *testing.T) {
				list := onSale(on)
				checkPrices(t, render(t, shop.item, shop.wrap, list), list)
			})
		}
	}
}

// An item without a price has none in its row, and no other item's row has another price. The price
// may be missing with its element, or only from it.
func TestDetectItemsWithoutPrice(t *testing.T) {
	const gone, written = "€7777.77", `(?:<span class="woo[^<>]*>€</span>|€)7777\.77`
	text := regexp.MustCompile(written)
	element := regexp.MustCompile(`<[a-z]+ [^<>]*>\s*` + written + `\s*</[a-z]+>|` + written)
	for _, shop := range slices.Concat(shops, moreShops) {
		for many, on := range sales {
			for _, n := range [...]int{0, 4, 9} {
				t.Run(fmt.Sprintf("%s/%s/%d", shop.name, many, n), func(t *testing.T) {
					list := onSale(on)
					list[n].Price, list[n].Before = gone, ""
					body := render(t, shop.item, shop.wrap, list)
					list[n].Price = ""
					checkPrices(t, text.ReplaceAllString(body, ""), list)
					checkPrices(t, element.ReplaceAllString(body, ""), list)
				})
			}
		}
	}
}

// checkPrices checks the rows that the first proposed list makes of a page.
func checkPrices(t *testing.T, body string, list []thing) {
	t.Helper()
	all := proposalsOf(t, model.Recipe{}, "text/html", body)
	first := slices.IndexFunc(all, func(p Proposal) bool { return p.Strategy == "list" })
	if first < 0 {
		t.Fatal("no list")
	}
	p := all[first]
	t.Log(p.String())
	for _, f := range p.Scraper.ItemsConfig {
		t.Log(f)
	}
	rows := extract(t, p.Scraper.Recipe(), body)
	if len(rows) != len(list) {
		t.Fatalf("%d rows of %d items: %v", len(rows), len(list), rows)
	}
	for i, row := range rows {
		var got map[string]any
		if err := json.Unmarshal([]byte(row), &got); err != nil {
			t.Fatal(err)
		}
		for name, want := range map[string]string{"title": title(list[i]), "price": list[i].Price,
			"listPrice": list[i].Before, "url": list[i].URL} {
			if have, _ := got[name].(string); have != want {
				t.Errorf("row %d: %s is %v, want %s", i, name, got[name], want)
			}
		}
	}
}

// An item without a price does not take another amount in it for its price, even one that is marked
// as other items' prices are.
func TestDetectOtherAmountInPlaceOfPrice(t *testing.T) {
	list := onSale(sales["none"])
	list[3].Price = ""
	checkPrices(t, render(t, `<div class="tile"><h3><a href="{{.URL}}">{{.Title}}</a></h3>{{if .Price}}`+
		`<p class="buy"><b class="price">{{.Price}}</b></p>{{else}}<p class="way">Shipping <b `+
		`class="price">€4.90</b></p>{{end}}</div>`, `<div class="tiles">%s</div>`, list), list)
}
