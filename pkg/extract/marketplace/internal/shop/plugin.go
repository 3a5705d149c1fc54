package shop

import (
	"shoal.dev/shoal/pkg/extract/internal/page"
	"shoal.dev/shoal/pkg/extract/internal/rows"
)

// Plugin reads one kind of page, whatever the shop system.
type Plugin struct {
	Tag  string
	Read func(*Reader, *Page) []Product
}

// Maker returns a rows.Maker for the plugin's pages. It is safe for concurrent use.
func (p Plugin) Maker() rows.Maker {
	reader := NewReader()
	return rows.Maker{Read: func(pages []page.Page, out *rows.Writer) (rows.More, error) {
		opened, err := Open(out.Context(), pages[0])
		if err != nil {
			return rows.More{}, err
		}
		products := p.Read(reader, opened)
		if err := opened.Err(); err != nil {
			return rows.More{}, err
		}
		for _, product := range products {
			if err := out.Whole(product.Append(nil)); err != nil {
				return rows.More{}, err
			}
		}
		return rows.More{}, nil
	}}
}
