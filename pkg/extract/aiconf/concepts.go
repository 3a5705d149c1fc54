package aiconf

import (
	"strings"
	"unicode"
)

// concept is a property that pages state in one way and schemas request under many names.
type concept struct {
	fields string // possible names of a property; the first is the concept's name
	paths  string // where items have it: property names joined by dots
	meta   string // names of meta elements
	// labels of tables and lists, in the languages of most shops; words of a label are joined by _
	labels string
	called string // further names of elements that hold it
	form   form
}

// form is the form of a concept's values.
type form uint8

const (
	anything form = iota
	money         // a number; in text, a separator before three digits means thousands
	quantity      // a number
	count         // a whole number
	currency      // three letters
	stock         // a schema.org availability
	date
	code   // digits with a check digit
	link   // an address
	entity // an item's name
)

// concepts are spelled as in pages and schemas; normal makes the names comparable.
var concepts = []concept{
	{fields: "name title productName headline heading jobTitle",
		paths:  "name headline title alternativeHeadline",
		meta:   "og:title twitter:title",
		labels: "name product title produkt titel nom nombre nome"},
	{fields: "description desc summary shortDescription longDescription abstract excerpt teaser",
		paths:  "description abstract",
		meta:   "og:description description twitter:description",
		labels: "description beschreibung descripción descrizione"},
	{fields: "articleBody body text content fullText", paths: "articleBody text",
		called: "articleContent entryContent postContent storyBody"},
	{fields: "reviewBody reviewText comment", paths: "reviewBody text description"},
	{fields: "price currentPrice salePrice finalPrice amount cost offerPrice unitPrice " +
		"sellingPrice priceAmount priceValue",
		paths: "offers.price offers.lowPrice offers.priceSpecification.price " +
			"offers.offers.price offerDetails.price price lowPrice priceSpecification.price",
		meta: "product:price:amount og:price:amount product:sale_price:amount", form: money,
		labels: "price our_price preis prix precio prezzo prijs pris cena",
		called: "regularPrice priceToPay"},
	{fields: "lowPrice minPrice priceFrom", paths: "offers.lowPrice offers.price lowPrice",
		form: money},
	{fields: "highPrice maxPrice priceTo", paths: "offers.highPrice highPrice", form: money},
	{fields: "originalPrice listPrice regularPrice oldPrice wasPrice msrp rrp compareAtPrice " +
		"strikePrice basePrice uvp",
		meta: "product:original_price:amount", labels: "list_price rrp msrp uvp regular_price",
		form:   money,
		called: "price amount was comparePrice retailPrice priceBefore"},
	{fields: "currency priceCurrency currencyCode", form: currency,
		meta: "product:price:currency og:price:currency",
		paths: "offers.priceCurrency offers.priceSpecification.priceCurrency " +
			"offers.offers.priceCurrency priceCurrency currency " +
			"offerDetails.currency salaryCurrency baseSalary.currency"},
	{fields: "brand brandName", paths: "brand manufacturer", meta: "product:brand og:brand",
		form:   entity,
		labels: "brand marke marque marca merk manufacturer hersteller fabricant fabrikant",
		called: "vendor"},
	{fields: "manufacturer maker producer", paths: "manufacturer brand", form: entity,
		labels: "manufacturer hersteller fabricant fabrikant fabricante produttore brand marke"},
	{fields: "sku articleNumber itemNumber productCode partNumber stockKeepingUnit artikelnummer",
		paths: "sku offers.sku productID",
		meta:  "product:retailer_item_id product:sku",
		labels: "sku article_number item_number item_no product_code artikelnummer artikel-nr " +
			"art.-nr référence referencia codice artikelnr",
		called: "ref reference asin"},
	{fields: "productId id identifier", paths: "productID identifier sku",
		meta: "product:retailer_item_id"},
	{fields: "mpn manufacturerPartNumber modelNumber", paths: "mpn model",
		labels: "mpn manufacturer_part_number model_number part_number herstellernummer"},
	{fields: "gtin ean gtin13 ean13 upc barcode gtin14 gtin12 gtin8 ean8", form: code,
		paths:  "gtin13 gtin gtin14 gtin12 gtin8 ean isbn offers.gtin13 offers.gtin productID",
		labels: "gtin ean upc barcode ean-code ean_code strichcode ean/gtin"},
	{fields: "isbn isbn13 isbn10", paths: "isbn gtin13", meta: "books:isbn book:isbn",
		labels: "isbn isbn-13 isbn-10 isbn13", form: code},
	{fields: "availability stockStatus availabilityStatus stock inStock isInStock " +
		"available isAvailable", form: stock,
		paths:  "offers.availability offers.offers.availability availability",
		meta:   "product:availability og:availability",
		called: "inventory deliveryStatus",
		labels: "availability stock verfügbarkeit lagerbestand disponibilité disponibilidad " +
			"disponibilità beschikbaarheid"},
	{fields: "condition itemCondition", paths: "offers.itemCondition itemCondition",
		meta: "product:condition", labels: "condition zustand état estado"},
	{fields: "color colour", paths: "color", meta: "product:color",
		labels: "color colour farbe couleur kleur colore"},
	{fields: "size", paths: "size", meta: "product:size",
		labels: "size größe taille talla maat taglia"},
	{fields: "material", paths: "material", meta: "product:material",
		labels: "material materials matière materiaal materiale"},
	{fields: "weight", paths: "weight shippingWeight",
		labels: "weight net_weight gewicht poids peso vikt"},
	{fields: "width", paths: "width", labels: "width breite largeur breedte"},
	{fields: "height", paths: "height", labels: "height höhe hauteur hoogte"},
	{fields: "depth length", paths: "depth length", labels: "depth length tiefe länge profondeur"},
	{fields: "model", paths: "model", labels: "model modell modèle modelo"},
	{fields: "category categories productType section",
		paths: "category articleSection occupationalCategory",
		meta:  "product:category article:section", labels: "category kategorie catégorie " +
			"categoría categoria"},
	{fields: "image imageUrl picture photo thumbnail mainImage img images pictures photos imageUrls", form: link,
		paths: "image thumbnailUrl photo", meta: "og:image:secure_url og:image twitter:image"},
	{fields: "url link productUrl pageUrl permalink canonical canonicalUrl href",
		paths: "url offers.url mainEntityOfPage", meta: "og:url", form: link},
	{fields: "rating ratingValue averageRating stars score reviewRating", form: quantity,
		paths: "aggregateRating.ratingValue reviewRating.ratingValue review.rating " +
			"ratingValue rating"},
	{fields: "bestRating maxRating", paths: "aggregateRating.bestRating " +
		"reviewRating.bestRating bestRating", form: quantity},
	{fields: "reviewCount numberOfReviews reviewsCount numReviews totalReviews reviews",
		form:  quantity,
		paths: "aggregateRating.reviewCount aggregateRating.ratingCount review.count reviewCount"},
	{fields: "ratingCount numberOfRatings votes", paths: "aggregateRating.ratingCount " +
		"aggregateRating.reviewCount ratingCount", form: quantity},
	{fields: "author authors authorName writer byline creator reviewer", paths: "author creator",
		meta: "author article:author byl dc.creator dcterms.creator parsely-author " +
			"sailthru.author citation_author twitter:creator", form: entity,
		labels: "author autor autorin auteur autore",
		called: "postAuthor entryAuthor articleAuthor authorLink autorName verfasser reporter"},
	{fields: "datePublished publishedDate publishDate publishedAt date pubDate releaseDate " +
		"datePosted postedAt reviewDate postedDate",
		paths: "datePublished datePosted uploadDate dateCreated releaseDate", form: date,
		meta: "article:published_time og:published_time date datepublished dc.date pubdate " +
			"dc.date.issued dcterms.created dcterms.date parsely-pub-date sailthru.date " +
			"publishdate publish-date publish_date publication_date publicationdate " +
			"og:article:published_time article.published citation_publication_date " +
			"cxenseparse:recs:publishtime",
		labels: "date datum published veröffentlicht fecha datum_der_veröffentlichung",
		called: "published posted postDate entryDate articleDate newsDate time datum fecha " +
			"timestamp postedOn publishedOn"},
	{fields: "dateModified updatedAt lastModified modifiedAt modified lastUpdated",
		paths: "dateModified", form: date,
		meta: "article:modified_time og:updated_time last-modified"},
	{fields: "publisher siteName", paths: "publisher", meta: "og:site_name application-name",
		form: entity},
	{fields: "keywords tags", paths: "keywords", meta: "keywords article:tag news_keywords"},
	{fields: "language lang inLanguage", paths: "inLanguage", meta: "og:locale content-language"},
	{fields: "seller merchant vendor shop store soldBy", paths: "offers.seller seller",
		labels: "seller sold_by verkäufer vendeur", form: entity},
	{fields: "telephone phone phoneNumber tel", paths: "telephone contactPoint.telephone",
		labels: "phone telephone telefon tel téléphone telefono"},
	{fields: "email emailAddress mail", paths: "email contactPoint.email",
		labels: "email e-mail mail"},
	{fields: "streetAddress street addressLine", paths: "address.streetAddress " +
		"location.address.streetAddress jobLocation.address.streetAddress streetAddress"},
	{fields: "addressLocality city town locality",
		paths: "address.addressLocality location.address.addressLocality " +
			"jobLocation.address.addressLocality addressLocality"},
	{fields: "postalCode zip zipCode postcode", paths: "address.postalCode " +
		"location.address.postalCode jobLocation.address.postalCode postalCode"},
	{fields: "addressRegion region state province",
		paths: "address.addressRegion location.address.addressRegion " +
			"jobLocation.address.addressRegion addressRegion"},
	{fields: "addressCountry country", paths: "address.addressCountry " +
		"location.address.addressCountry jobLocation.address.addressCountry addressCountry",
		form: entity},
	{fields: "latitude lat", paths: "geo.latitude location.geo.latitude latitude", form: quantity},
	{fields: "longitude lng lon", paths: "geo.longitude location.geo.longitude longitude",
		form: quantity},
	{fields: "startDate start startTime startsAt validFrom", paths: "startDate validFrom",
		form: date},
	{fields: "endDate end endTime endsAt", paths: "endDate", form: date},
	{fields: "validThrough expires expiryDate deadline",
		paths: "validThrough offers.priceValidUntil expires", form: date},
	{fields: "location venue place jobLocation",
		paths: "location jobLocation.address.addressLocality jobLocation", form: entity},
	{fields: "company companyName employer hiringOrganization organization",
		paths: "hiringOrganization", form: entity},
	{fields: "salary baseSalary", paths: "baseSalary.value.value baseSalary.value baseSalary",
		labels: "salary gehalt", form: money},
	{fields: "minSalary salaryMin", paths: "baseSalary.value.minValue baseSalary.minValue",
		form: money},
	{fields: "maxSalary salaryMax", paths: "baseSalary.value.maxValue baseSalary.maxValue",
		form: money},
	{fields: "employmentType jobType contractType", paths: "employmentType"},
	{fields: "area floorSize livingSpace surface", paths: "floorSize.value floorSize",
		labels: "living_space wohnfläche surface floor_size", form: quantity},
	{fields: "rooms numberOfRooms bedrooms numberOfBedrooms",
		paths: "numberOfRooms numberOfBedrooms", labels: "rooms zimmer bedrooms pièces",
		form: quantity},
	{fields: "organizer", paths: "organizer", form: entity},
	{fields: "performer", paths: "performer", form: entity},
}

// lexicon maps the normal names of fields to concepts.
type lexicon map[string]*concept

func newLexicon() lexicon {
	found := lexicon{}
	for i := range concepts {
		for name := range strings.FieldsSeq(concepts[i].fields) {
			if name = normal(name); found[name] == nil {
				found[name] = &concepts[i]
			}
		}
	}
	return found
}

// prefixes are words before a field's name that do not change its meaning.
var prefixes = []string{"product", "item", "article", "job", "event", "offer", "page", "company",
	"current", "book", "the"}

// of returns the concept of a field, or nil.
func (l lexicon) of(field string) *concept {
	name := normal(field)
	if c := l[name]; c != nil {
		return c
	}
	for _, p := range prefixes {
		if c := l[strings.TrimPrefix(name, p)]; c != nil && strings.HasPrefix(name, p) {
			return c
		}
	}
	return nil
}

// normal returns a name in lower case without white space and punctuation.
func normal(name string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return unicode.ToLower(r)
		}
		return -1
	}, name)
}
