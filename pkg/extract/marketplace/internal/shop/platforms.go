package shop

import "bytes"

// platform describes a shop system: how to recognize its pages, and where its own and common themes
// keep each field.
type platform struct {
	name    string
	signals []string // substrings of its pages; the most matches win
	product places   // on a product page
	cards   []string // selectors of list items; the first that gives items counts
	card    places   // within a list item
	data    func(*Page) Product
}

// places maps each field to its alternatives, separated by " | ". Each alternative is a CSS
// selector, optionally with @ and the attribute that holds the value. @image takes an image's
// address. & is the item itself.
type places map[string]string

// Platforms returns the names of the known systems, without schema.org.
func Platforms() []string {
	names := make([]string, len(platforms))
	for i := range platforms {
		names[i] = platforms[i].name
	}
	return names
}

// detect returns the system with the most signals, or nil if none is found.
func detect(body []byte) *platform {
	var best *platform
	most := 0
	for i := range platforms {
		n := 0
		for _, signal := range platforms[i].signals {
			if bytes.Contains(body, []byte(signal)) {
				n++
			}
		}
		if n > most {
			best, most = &platforms[i], n
		}
	}
	return best
}

// platforms never change.
var platforms = []platform{
	{
		name: "shopify", data: shopifyData,
		signals: []string{"cdn.shopify.com", "Shopify.theme", "shopify-digital-wallet",
			".myshopify.com", "/cdn/shop/", "shopify-section"},
		product: places{
			"title": "h1.product__title | .product__title h1 | h1.product-single__title | " +
				"h1.product-title | h1",
			"price": ".price--on-sale .price-item--sale | .price__regular " +
				".price-item--regular | .product-single__price | [data-product-price] | " +
				".product__price",
			"listPrice": ".price--on-sale s.price-item--regular | " +
				".product-single__price--compare | s[data-compare-price] | .compare-at-price",
			"brand":       ".product__vendor | .product-single__vendor | .product-vendor",
			"sku":         ".product__sku | .variant-sku | .product-single__sku",
			"images":      ".product__media img@image | .product-single__photo img@image",
			"description": ".product__description | .product-single__description",
		},
		cards: []string{".card-wrapper", ".product-card", ".grid-product", ".grid-view-item",
			".product-item",
			"li.grid__item:has(a[href*='/products/'])"},
		card: places{
			"title": ".card__information .card__heading a | .card__heading | " +
				".product-card__title | .grid-product__title | .grid-view-item__title | " +
				".product-item__title | [class*=title] | a[href*='/products/']",
			"url": "a[href*='/products/']@href | &@href",
			"price": ".price--on-sale .price-item--sale | .price__regular " +
				".price-item--regular | .price-item--sale | .price-item--regular | " +
				".grid-product__price | .product-price__price | .product-item__price | " +
				".money | .price",
			"listPrice": ".price--on-sale s.price-item--regular | .product-price__sale s | " +
				".compare-at-price | .grid-product__price--original | s",
			"image": "img@image",
			"brand": ".card__vendor | .grid-product__vendor | .product-item__vendor | " +
				".product-card__vendor",
			"availability": ".card__badge | .badge | .product-tag--sold-out",
		},
	},
	{
		name: "woocommerce", data: wooData,
		signals: []string{"woocommerce", "/plugins/woocommerce/", "wc-block-",
			"woocommerce-Price-amount"},
		product: places{
			"title": ".product_title | h1.entry-title | h1",
			"price": ".summary p.price ins .amount | .summary p.price .amount | p.price " +
				"ins .amount | p.price .amount | .wp-block-woocommerce-product-price .amount",
			"listPrice": ".summary p.price del .amount | p.price del .amount | " +
				".wp-block-woocommerce-product-price del .amount",
			"availability": ".summary .stock | .stock",
			"sku":          ".product_meta .sku | .sku",
			"category":     ".posted_in a",
			"images": ".woocommerce-product-gallery__image a@href | " +
				".woocommerce-product-gallery__image img@image",
			"description": ".woocommerce-product-details__short-description | #tab-description",
			"rating":      ".woocommerce-product-rating .star-rating",
			"reviewCount": ".woocommerce-review-link .count",
			"productId":   "button[name=add-to-cart]@value | form.variations_form@data-product_id",
		},
		cards: []string{"ul.products > li.product", ".products .product",
			"li.wc-block-grid__product", "li.wc-block-product",
			".wc-block-product-template > li"},
		card: places{
			"title": ".woocommerce-loop-product__title | .wc-block-grid__product-title | " +
				".wp-block-post-title | h2 | h3",
			"url": "a.woocommerce-LoopProduct-link@href | " +
				"a.woocommerce-loop-product__link@href | .wp-block-post-title a@href | a@href",
			"price": ".price ins .amount | .price .amount | " +
				".wc-block-grid__product-price ins .amount | .amount",
			"listPrice":    ".price del .amount | del .amount",
			"image":        "img@image",
			"rating":       ".star-rating",
			"sku":          "[data-product_sku]@data-product_sku",
			"productId":    "[data-product_id]@data-product_id",
			"availability": "&@class",
		},
	},
	{
		name: "magento", data: noData,
		signals: []string{"text/x-magento-init", "data-mage-init", "Magento_", "mage/cookies",
			"/static/version"},
		product: places{
			"title": ".page-title .base | .page-title | h1",
			"price": ".product-info-price [data-price-type=finalPrice]@data-price-amount " +
				"| .product-info-price .special-price .price | .product-info-price .price | " +
				".product-info-main .price",
			"currency": ".product-info-price [data-price-type=finalPrice] .price | " +
				".product-info-price .price",
			"listPrice": ".product-info-price [data-price-type=oldPrice]@data-price-amount | " +
				".product-info-price .old-price .price",
			"availability": ".product-info-stock-sku .stock | .stock",
			"sku":          ".product.attribute.sku .value | [itemprop=sku]",
			"description": ".product.attribute.description .value | " +
				".product.attribute.overview .value",
			"images":      ".gallery-placeholder img@image | .fotorama__img@image",
			"rating":      ".product-info-main .rating-result@title | .rating-result@title",
			"reviewCount": ".reviews-actions .action.view",
			"productId": "input[name=product]@value | .product-info-price " +
				"[data-product-id]@data-product-id",
		},
		cards: []string{"li.product-item", ".item.product.product-item", ".products-grid .item"},
		card: places{
			"title": ".product-item-link | .product-item-name | .product-name",
			"url": ".product-item-link@href | a.product-item-photo@href | " +
				".product-name a@href",
			"price": "[data-price-type=finalPrice]@data-price-amount | .special-price " +
				".price | .price",
			"currency":     "[data-price-type=finalPrice] .price | .price",
			"listPrice":    "[data-price-type=oldPrice]@data-price-amount | .old-price .price",
			"image":        ".product-image-photo@image | img@image",
			"rating":       ".rating-result@title",
			"reviewCount":  ".reviews-actions .action.view",
			"sku":          "[data-product-sku]@data-product-sku",
			"productId":    "[data-product-id]@data-product-id",
			"availability": ".stock",
		},
	},
	{
		name: "prestashop", data: prestaData,
		signals: []string{"content=\"PrestaShop\"", "var prestashop", "PrestaShop", "/modules/ps_",
			"product-miniature"},
		product: places{
			"title": "h1[itemprop=name] | h1.product-name | #main h1 | h1",
			"price": ".current-price-value@content | .current-price " +
				"[itemprop=price]@content | .current-price",
			"currency":     "meta[itemprop=priceCurrency]@content | .current-price",
			"listPrice":    ".product-discount .regular-price | .product-prices .regular-price",
			"availability": "#product-availability | link[itemprop=availability]@href",
			"brand":        ".product-manufacturer a | .product-manufacturer img@alt",
			"sku":          ".product-reference span",
			"images":       ".images-container img@image | .product-cover img@image",
			"description":  ".product-description | [id^=product-description-short]",
			"productId":    "#product_page_product_id@value | input[name=id_product]@value",
		},
		cards: []string{"article.product-miniature", ".product-miniature",
			".product_list .product-container"},
		card: places{
			"title": ".product-title | .product-name",
			"url": ".product-title a@href | a.product-thumbnail@href | " +
				"a.product-name@href | a@href",
			"price":        ".product-price-and-shipping .price | .product-price | .price",
			"listPrice":    ".regular-price | .old-price",
			"image":        "img@image",
			"productId":    "&@data-id-product",
			"availability": ".product-flag.out_of_stock",
		},
	},
	{
		name: "shopware", data: noData,
		signals: []string{"/bundles/storefront/", "is-ctl-", "product-detail-ordernumber",
			"data-add-to-cart", "shopware"},
		product: places{
			"title": ".product-detail-name | h1",
			"price": ".product-detail-price-container meta[itemprop=price]@content | " +
				"meta[itemprop=price]@content | .product-detail-price",
			"currency": "meta[itemprop=priceCurrency]@content | .product-detail-price",
			"listPrice": ".product-detail-list-price-wrapper .list-price-price | " +
				".list-price-price",
			"availability": "link[itemprop=availability]@href | .delivery-information",
			"brand": ".product-detail-manufacturer-logo@alt | " +
				".product-detail-manufacturer-link",
			"sku":         ".product-detail-ordernumber",
			"gtin":        ".product-detail-ean | meta[itemprop=gtin13]@content",
			"images":      ".gallery-slider-image@image",
			"description": ".product-detail-description-text",
			"productId":   "[itemprop=productID]@content",
			"reviewCount": ".product-detail-reviews-link",
		},
		cards: []string{".card.product-box", ".product-box"},
		card: places{
			"title":     ".product-name",
			"url":       "a.product-name@href | .product-name a@href | a.product-image-link@href",
			"price":     ".product-price",
			"listPrice": ".list-price-price",
			"image":     ".product-image@image | img@image",
			"productId": "input[name=product-id]@value",
			"rating":    ".product-review-rating .visually-hidden",
		},
	},
	{
		name: "bigcommerce", data: noData,
		signals: []string{"cdn11.bigcommerce.com", "bigcommerce.com/s-", "stencilBootstrap",
			"var BCData", "productView-title", "data-stencil"},
		product: places{
			"title": "h1.productView-title | .productView-title | h1",
			"price": ".productView-price meta[itemprop=price]@content | " +
				"[data-product-price-with-tax] | [data-product-price-without-tax] | " +
				".productView-price .price",
			"currency": ".productView-price meta[itemprop=priceCurrency]@content | " +
				"meta[itemprop=currency]@content | .productView-price .price",
			"listPrice": "[data-product-non-sale-price-with-tax] | " +
				"[data-product-non-sale-price-without-tax] | [data-product-rrp-with-tax] | " +
				"[data-product-rrp-price-without-tax]",
			"brand":       ".productView-brand span | .productView-brand",
			"sku":         "[data-product-sku] | .productView-info-value--sku",
			"gtin":        "[data-product-upc] | .productView-info-value--upc",
			"mpn":         "[data-product-mpn] | .productView-info-value--mpn",
			"images":      ".productView-thumbnail-link@href | .productView-image img@image",
			"description": "#tab-description | .productView-description",
			"productId":   "input[name=product_id]@value",
			"condition":   ".productView-info-value--condition",
		},
		cards: []string{"article.card", ".productGrid .product .card", ".productGrid .product"},
		card: places{
			"title": ".card-title",
			"url":   ".card-title a@href | a.card-figure__link@href | a@href",
			"price": "[data-product-price-with-tax] | [data-product-price-without-tax] | " +
				".price--main | .price",
			"listPrice": "[data-product-non-sale-price-with-tax] | " +
				"[data-product-non-sale-price-without-tax] | [data-product-rrp-with-tax] | " +
				"[data-product-rrp-price-without-tax]",
			"image":     ".card-image@image | img@image",
			"brand":     ".card-text--brand | [data-test-info-type=brandName]",
			"productId": "[data-product-id]@data-product-id | &@data-entity-id",
		},
	},
}
