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

// fields are what every contender reads, in this order: the five of the page, and with absent one more, which the page
// does not have: whoever stops reading once all is found cannot stop then.
func fields(absent bool) []model.Field {
	five := []model.Field{
		{Name: "title", Selector: "h1.title", Kind: model.Text},
		{Name: "price", Selector: "main .price", Kind: model.Text},
		{Name: "sku", Selector: "div.sku", Kind: model.Text},
		{Name: "stock", Selector: "div.stock", Kind: model.Text},
		{Name: "canonical", Selector: "link[rel=canonical]", Kind: model.Attr, Attr: "href"},
	}
	if !absent {
		return five
	}
	return append(five, model.Field{Name: "absent", Selector: "div.absent", Kind: model.Text})
}

// webConfig is a web that shows the page at that many addresses or a few more.
func webConfig(addresses int) synthweb.Config {
	return synthweb.Config{
		Hosts:        hosts,
		PagesPerHost: (addresses + hosts - 1) / hosts,
		Template:     productPage,
		TemplateRow: synthweb.Row{
			"title": "Product name 12345", "price": "645.99", "sku": "SKU-00012345", "stock": "In stock",
			"canonical": "/p/12345", "absent": nil,
		},
		LogLimit: 1, // requests are counted, not kept
	}
}

// expectedRows is the fingerprint of the rows that a correct run finds at the addresses.
func expectedRows(web *synthweb.Web, addresses []string) (string, error) {
	var rows [][]byte
	for _, address := range addresses {
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
		for _, field := range fields(true) {
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
