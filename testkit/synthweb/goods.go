package synthweb

import (
	"fmt"
	"strings"
)

// goods is what a product page or a listing's item shows.
type goods struct {
	title, price, was, sku, stock string
	offer                         bool // was is shown
}

// trades are the kinds of goods. A shop sells one of them, by its host's number.
var trades = [...][]string{
	{"Desk Lamp", "Wool Throw", "Armchair", "Bookshelf", "Side Table", "Mirror", "Picture Frame",
		"Rug"},
	{"Field Guide", "Café Cookbook", "Atlas", "Short Stories", "Poems & Letters", "Travel Diary",
		"Sketchbook"},
	{"Tent", "Backpack", "Rain Jacket", "Camping Stove", "Trail Map", "Thermos", "Head Torch",
		"Hammock"},
	{"Salt & Pepper Mill", "Frying Pan", "Teapot", "Chopping Board", "Bread Knife", "Mixing Bowl",
		"Apron"},
	{"Watering Can", "Pruning Shears", "Plant Pot", "Bird House", "Garden Bench", "Seed Box",
		"Lantern"},
}

var makers = [...]string{"Ashby", "Brændholm", "Corvin", "Dahl & Sons", "Elster", "Fennimore",
	"Grünwald", "Hollis",
	"Ivar", "Juniper", "Kestrel", "Lindqvist"}

var styles = [...]string{"Classic", "Compact", "Everyday", "Foldable", "Handmade", "Large", "Light",
	"Nordic",
	"Original", "Pocket", "Rustic", "Small", "Solid Oak", "Summer", "Vintage", "Winter"}

// goodsOf draws page n's product. With itemNumber above 0 it draws that item of page n's listing; 1
// is the first.
func (w *Web) goodsOf(host, n, itemNumber int) goods {
	draw := w.hash(host, n, saltGoods+uint64(itemNumber))
	pick := func(bound int) int {
		picked := int(draw % uint64(bound))
		draw = mix(draw)
		return picked
	}
	things := trades[host%len(trades)]
	cents := 450 + 10*pick(2000)
	g := goods{
		title: makers[pick(len(makers))] + " " + styles[pick(len(styles))] + " " +
			things[pick(len(things))],
		price: money(cents),
		sku:   fmt.Sprintf("S%05d-%05d", host, n),
		stock: soldOut,
		offer: pick(5) == 0,
	}
	if itemNumber > 0 {
		g.sku += fmt.Sprintf("-%04d", itemNumber)
	}
	if g.offer {
		g.was = money(cents + cents/4)
	}
	if left := pick(40); left > 0 {
		g.stock = fmt.Sprintf("%d in stock", left)
	}
	return g
}

const soldOut = "Sold out"

func money(cents int) string { return fmt.Sprintf("%d.%02d", cents/100, cents%100) }

const fetchPrefix = "Fetch "

// fetchStock is the stock of a product that changes at every fetch: the fetch's number, from 1.
func fetchStock(fetch int) string { return fmt.Sprintf("%s%d", fetchPrefix, fetch) }

// FetchOf returns the fetch, from 1, that produced a row of a changing page. All rows of one fetch
// agree.
func FetchOf(row Row) (fetch int, ok bool) {
	stock, _ := row["stock"].(string)
	digits, found := strings.CutPrefix(stock, fetchPrefix)
	if !found {
		return 0, false
	}
	fetch, err := parseNumber(digits)
	return fetch, err == nil
}

// shopName turns "birch-books.example" into "Birch Books".
func shopName(host string) string {
	label, _, _ := strings.Cut(host, ".")
	words := strings.Split(label, "-")
	for i, word := range words {
		if word != "" {
			words[i] = strings.ToUpper(word[:1]) + word[1:]
		}
	}
	return strings.Join(words, " ")
}
