package main

import (
	"bytes"
	"crypto/sha256"
	_ "embed" // the page
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"

	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/testkit/synthweb"
)

//go:embed testdata/product-page.html
var productPage []byte

// hosts is how many sites the addresses are spread over.
const hosts = 64

// sixth is a field more, for those who stop reading once all is found.
type sixth string

const (
	noSixth sixth = ""
	absent  sixth = "absent" // which the page does not have
	last    sixth = "last"   // in the page's last card but one of 40 alike, so that every tag has to be placed
)

// fields are what every contender reads, in this order: the five of the page, and the sixth, if there is one.
func fields(more sixth) []model.Field {
	five := []model.Field{
		{Name: "title", Selector: "h1.title", Kind: model.Text},
		{Name: "price", Selector: "main .price", Kind: model.Text},
		{Name: "sku", Selector: "div.sku", Kind: model.Text},
		{Name: "stock", Selector: "div.stock", Kind: model.Text},
		{Name: "canonical", Selector: "link[rel=canonical]", Kind: model.Attr, Attr: "href"},
	}
	switch more {
	case absent:
		return append(five, model.Field{Name: "sixth", Selector: "div.absent", Kind: model.Text})
	case last:
		return append(five, model.Field{Name: "sixth", Selector: "aside .card:nth-child(39) .price", Kind: model.Text})
	}
	return five
}

// webConfig is a web that shows the page at that many addresses or a few more.
func webConfig(addresses int, more sixth) synthweb.Config {
	row := synthweb.Row{"title": "Product name 12345", "price": "645.99", "sku": "SKU-00012345", "stock": "In stock",
		"canonical": "/p/12345", "sixth": nil}
	if more == last {
		row["sixth"] = "38.50"
	}
	return synthweb.Config{
		Hosts:        hosts,
		PagesPerHost: (addresses + hosts - 1) / hosts,
		Template:     productPage,
		TemplateRow:  row,
		LogLimit:     1, // requests are counted, not kept
	}
}

// expectedRows is the fingerprint of the rows that a correct run finds at the addresses from..to-1.
func expectedRows(web *synthweb.Web, from, to int) (string, error) {
	var rows [][]byte
	at := 0
	for address := range web.URLs(to) {
		if at++; at <= from {
			continue
		}
		truth, err := web.Truth(address)
		if err != nil {
			return "", err
		}
		if len(truth.Pages) != 1 || len(truth.Pages[0].Rows) != 1 {
			return "", fmt.Errorf("the web has no single row at %s", address)
		}
		row, err := json.Marshal(truth.Pages[0].Rows[0])
		if err != nil {
			return "", fmt.Errorf("row of %s: %w", address, err)
		}
		rows = append(rows, row)
	}
	return fingerprint(rows)
}

// fingerprint is the same for the same rows in any order, whatever the order of their keys and whatever else they hold.
func fingerprint(rows [][]byte) (string, error) {
	canonical := make([][]byte, len(rows))
	for i, row := range rows {
		var values map[string]any
		if err := json.Unmarshal(row, &values); err != nil {
			return "", fmt.Errorf("row %q: %w", row, err)
		}
		ours := map[string]any{}
		for _, field := range fields(last) {
			ours[field.Name] = values[field.Name]
		}
		var err error
		if canonical[i], err = json.Marshal(ours); err != nil {
			return "", fmt.Errorf("row %q: %w", row, err)
		}
	}
	slices.SortFunc(canonical, bytes.Compare)
	sum := sha256.Sum256(bytes.Join(canonical, []byte("\n")))
	return fmt.Sprintf("%d rows %s", len(rows), hex.EncodeToString(sum[:8])), nil
}
