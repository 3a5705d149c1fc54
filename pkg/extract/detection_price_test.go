package extract

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"shoal.dev/shoal/pkg/model"
)

// productPages imitates the prices of pages about one product, on sale for €20.00 and not.
var productPages = []struct{ name, sale, full string }{
	{"WooCommerce",
		`<p class="price"><del aria-hidden="true"><span class="woocommerce-Price-amount amount"><bdi><span>€</span>25.00</bdi></span></del> <ins><span class="woocommerce-Price-amount amount"><bdi><span>€</span>20.00</bdi></span></ins></p>`,
		`<p class="price"><span class="woocommerce-Price-amount amount"><bdi><span>€</span>20.00</bdi></span></p>`},
	{"Shopify",
		`<div class="price price--large price--on-sale"><div class="price__container"><div class="price__regular"><span class="visually-hidden">Regular price</span><span class="price-item price-item--regular">€20.00</span></div><div class="price__sale"><span class="visually-hidden">Regular price</span><span><s class="price-item price-item--regular">€25.00</s></span><span class="visually-hidden">Sale price</span><span class="price-item price-item--sale price-item--last">€20.00</span></div></div></div>`,
		`<div class="price price--large"><div class="price__container"><div class="price__regular"><span class="visually-hidden">Regular price</span><span class="price-item price-item--regular">€20.00</span></div><div class="price__sale"><span class="visually-hidden">Regular price</span><span><s class="price-item price-item--regular"></s></span><span class="visually-hidden">Sale price</span><span class="price-item price-item--sale price-item--last">€20.00</span></div></div></div>`},
	{"Shopify, the old price in both blocks",
		`<div class="price price--large price--on-sale"><div class="price__container"><div class="price__regular"><span class="price-item price-item--regular">€25.00</span></div><div class="price__sale"><span><s class="price-item price-item--regular">€25.00</s></span><span class="price-item price-item--sale price-item--last">€20.00</span></div></div></div>`,
		``},
	{"Magento",
		`<div class="product-info-price"><div class="price-box price-final_price"><span class="special-price"><span class="price-container price-final_price tax weee"><span class="price-label">Special Price</span><span class="price-wrapper"><span class="price">€20.00</span></span></span></span><span class="old-price"><span class="price-container"><span class="price-label">Was</span><span class="price-wrapper"><span class="price">€25.00</span></span></span></span></div></div>`,
		`<div class="product-info-price"><div class="price-box price-final_price"><span class="price-container price-final_price tax weee"><span class="price-wrapper"><span class="price">€20.00</span></span></span></div></div>`},
	{"Magento, first version",
		`<div class="price-box"><p class="old-price"><span class="price-label">Regular Price:</span> <span class="price" id="old-price-7">€25.00</span></p><p class="special-price"><span class="price-label">Special Price</span> <span class="price" id="product-price-7">€20.00</span></p></div>`,
		`<div class="price-box"><span class="regular-price" id="product-price-7"><span class="price">€20.00</span></span></div>`},
	{"PrestaShop",
		`<div class="product-prices js-product-prices"><div class="product-discount"><span class="regular-price">€25.00</span></div><div class="product-price h5 has-discount"><div class="current-price"><span class="current-price-value" content="20">€20.00</span><span class="discount discount-percentage">Save 20%</span></div></div></div>`,
		`<div class="product-prices js-product-prices"><div class="product-price h5"><div class="current-price"><span class="current-price-value" content="20">€20.00</span></div></div></div>`},
	{"PrestaShop, an amount off",
		`<div class="product-prices js-product-prices"><div class="product-discount"><span class="regular-price">€25.00</span></div><div class="product-price h5 has-discount"><div class="current-price"><span class="current-price-value" content="20">€20.00</span><span class="discount discount-amount">Save €5.00</span></div></div></div>`,
		``},
	{"PrestaShop, an amount off first",
		`<p class="product-price-and-shipping"><span class="discount-amount">-€5.00</span><span class="regular-price">€25.00</span><span class="price">€20.00</span></p>`,
		`<p class="product-price-and-shipping"><span class="price">€20.00</span></p>`},
	{"Shopware, the old price in it",
		`<div class="product-detail-price-container"><p class="product-detail-price with-list-price">€20.00 <span class="list-price"><span class="list-price-price">€25.00</span><span class="list-price-percentage">(20% saved)</span></span></p></div>`,
		`<div class="product-detail-price-container"><p class="product-detail-price">€20.00</p></div>`},
	{"Shopware",
		`<div class="product-detail-price-container"><p class="product-detail-price with-list-price">€20.00</p><span class="list-price"><span class="list-price-price">€25.00</span></span></div>`,
		`<div class="product-detail-price-container"><p class="product-detail-price">€20.00</p></div>`},
	{"the old price in the current one's element",
		`<p class="price">€20.00 <del>€25.00</del></p>`, `<p class="price">€20.00</p>`},
	{"OpenCart",
		`<ul class="list-unstyled"><li><span class="price-old">€25.00</span></li><li><h2><span class="price-new">€20.00</span></h2></li><li>Ex Tax: €16.00</li></ul>`,
		`<ul class="list-unstyled"><li><h2><span class="price-new">€20.00</span></h2></li><li>Ex Tax: €16.00</li></ul>`},
	{"BigCommerce",
		`<div class="productView-price"><div class="price-section non-sale-price--withoutTax"><span>Was:</span><span class="price price--non-sale">€25.00</span></div><div class="price-section price-section--withoutTax"><span class="price price--withoutTax">€20.00</span></div></div>`,
		`<div class="productView-price"><div class="price-section non-sale-price--withoutTax" style="display: none;"><span>Was:</span><span class="price price--non-sale"></span></div><div class="price-section price-section--withoutTax"><span class="price price--withoutTax">€20.00</span></div></div>`},
	{"Squarespace",
		`<div class="product-price"><span class="visually-hidden">Sale Price:</span><span class="sale-price">€20.00</span><span class="visually-hidden">Original Price:</span><span class="original-price">€25.00</span></div>`,
		`<div class="product-price">€20.00</div>`},
	{"struck by a utility class",
		`<div class="flex"><span class="text-gray-400 line-through">€25.00</span><span class="text-2xl">€20.00</span></div>`,
		`<div class="flex"><span class="text-2xl">€20.00</span></div>`},
	{"struck by a utility class alone",
		`<div class="flex"><span class="line-through">€25.00</span><span>€20.00</span></div>`, ``},
	{"struck by a style",
		`<div class="x"><span style="text-decoration: line-through">€25.00</span><span>€20.00</span></div>`,
		`<div class="x"><span>€20.00</span></div>`},
	{"a unit price first",
		`<div class="price"><span class="unit-price">€3.90 / kg</span> <s>€25.00</s> <span class="now">€20.00</span></div>`,
		`<div class="price"><span class="unit-price">€3.90 / kg</span> <span class="now">€20.00</span></div>`},
	{"a member's price first",
		`<div class="box"><span class="club-price">Club €18.00</span> <s>€25.00</s> <span class="price">€20.00</span></div>`,
		`<div class="box"><span class="club-price">Club €18.00</span> <span class="price">€20.00</span></div>`},
	{"only a unit price", ``, `<div class="price"><span class="unit-price">€20.00</span></div>`},
	{"another price far away", ``,
		`<div class="buy"><p><span class="regular-price">€20.00</span></p></div><div><div><div><p>Gifts from <b class="price">€5.00</b></p></div></div></div>`},
}

// notations are ways to write 25 and 20 without a currency.
var notations = []struct{ before, now string }{{"€25.00", "€20.00"}, {"25,-", "20,-"},
	{"1.325,-", "1.320,-"}, {"25:-", "20:-"}, {"25,–", "20,–"}, {"25,00 €", "20,00 €"}}

// A page about one product gives its current price, and the one before a reduction as listPrice.
func TestDetectPricesOfProducts(t *testing.T) {
	for _, shop := range productPages {
		for _, as := range notations {
			for body, before := range map[string]string{shop.sale: as.before, shop.full: ""} {
				if body != "" {
					body = strings.NewReplacer("<span>€</span>25.00", as.before,
						"<span>€</span>20.00", as.now, "€25.00", as.before, "€20.00",
						as.now).Replace(body)
					t.Run(shop.name+"/"+as.now+"/"+before, func(t *testing.T) {
						checkProduct(t, body, as.now, before)
					})
				}
			}
		}
	}
}

// A price may have a point and a dash, if something else says that it is one.
func TestDetectPriceWithPointAndDash(t *testing.T) {
	checkProduct(t, `<p class="price">1'299.–</p>`, "1'299.–", "")
	checkProduct(t, `<div><s>1'399.-</s> <b class="price">1'299.-</b></div>`, "1'299.-", "1'399.-")
}

// checkProduct checks the row of the proposal for a page about one thing with these prices.
func checkProduct(t *testing.T, prices, now, before string) {
	t.Helper()
	body := `<html><head><title>Oak lamp - Shop</title></head><body><nav><a href="/">Home</a></nav>` +
		`<main><h1>Oak lamp</h1><img src="/i.jpg">` + prices + `<p>A lamp that is made of oak, by ` +
		`hand, in a small workshop in the mountains.</p><button>Add to cart</button></main></body></html>`
	all := proposalsOf(t, model.Recipe{}, "text/html", body)
	at := slices.IndexFunc(all, func(p Proposal) bool { return p.Strategy == "product" })
	if at < 0 {
		t.Fatalf("no product among %v", all)
	}
	t.Log(all[at].Scraper.ItemsConfig)
	rows := extract(t, all[at].Scraper.Recipe(), body)
	var row map[string]any
	if err := json.Unmarshal([]byte(rows[0]), &row); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"price": now, "listPrice": before} {
		if have, _ := row[name].(string); have != want {
			t.Errorf("%s is %v, want %q", name, row[name], want)
		}
	}
}
