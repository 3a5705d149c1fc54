// Package page owns the page behind the project's figures: its bytes and its five fields. It has
// the web that shows it under any number of addresses, and the rows that a correct run finds there.
package page

import (
	"bytes"
	"crypto/sha256"
	_ "embed" // the page
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"

	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/testkit/synthweb"
)

//go:embed product-page.html
var html string

// HTML returns the page. The web replaces 12345 with the address's number.
func HTML() []byte { return []byte(html) }

// Hosts is how many sites the addresses are spread over.
const Hosts = 64

// Fields are the fields that every contender reads, in order: the page's five. With absent there is
// one more, which the page does not have, so that nobody can stop reading early.
func Fields(absent bool) []model.Field {
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

// Web is a web that shows the page at that many addresses or a few more.
func Web(addresses int) synthweb.Config {
	return synthweb.Config{
		Hosts:        Hosts,
		PagesPerHost: (addresses + Hosts - 1) / Hosts,
		Template:     HTML(),
		TemplateRow: synthweb.Row{
			"title": "Product name 12345", "price": "645.99", "sku": "SKU-00012345",
			"stock":     "In stock",
			"canonical": "/p/12345", "absent": nil,
		},
		LogLimit: 1, // requests are counted, not kept
	}
}

// Rows returns the fingerprint of the rows that a correct run finds at the addresses.
func Rows(web *synthweb.Web, addresses []string) (string, error) {
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
	return Fingerprint(rows)
}

// pathOf returns a link as the page writes it: Shoal's rows have it absolute, its peers' as
// written.
func pathOf(link string) string {
	if u, err := url.Parse(link); err == nil && u.Host != "" {
		return u.Path
	}
	return link
}

// Fingerprint is the same for equal rows, whatever the order of rows and keys, and whatever other
// fields they have.
func Fingerprint(rows [][]byte) (string, error) {
	canonical := make([][]byte, len(rows))
	for i, row := range rows {
		var values map[string]any
		if err := json.Unmarshal(row, &values); err != nil {
			return "", fmt.Errorf("row %q: %w", row, err)
		}
		ours := map[string]any{}
		for _, field := range Fields(true) {
			ours[field.Name] = values[field.Name]
		}
		if link, ok := ours["canonical"].(string); ok {
			ours["canonical"] = pathOf(link)
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
