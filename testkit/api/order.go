package api

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"strings"

	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/testkit/synthweb"
)

// NextLink follows the synthetic web's chains.
func NextLink() model.Pagination {
	return model.Pagination{Type: model.NextLink, Selector: synthweb.NextSelector}
}

// Order describes a list run.
type Order struct {
	Who        Client
	URLs       []string
	Kind       model.ScraperType
	Fields     []model.Field
	Pagination model.Pagination
	MaxCharge  int64 // 0: none
}

// ProductOrder returns an order that reads products.
func ProductOrder(who Client, urls []string) Order {
	return Order{Who: who, URLs: urls, Kind: model.SingleProduct, Fields: synthweb.ProductFields()}
}

// ListingOrder returns an order that reads chains of listings.
func ListingOrder(who Client, urls []string, pagination model.Pagination) Order {
	return Order{Who: who, URLs: urls, Kind: model.MultipleProducts, Fields: synthweb.ItemFields(),
		Pagination: pagination}
}

// Query makes the group, and a template for what a list run's query cannot express.
func (o Order) Query(ctx context.Context) (url.Values, error) {
	name := "run " + NewKey()
	group, err := o.Who.PutGroup(ctx, name)
	if err != nil {
		return nil, err
	}
	return o.ListQuery(ctx, o.Who, group, name)
}

// ListQuery returns the query of a list run in a group.
func (o Order) ListQuery(ctx context.Context, who Client, group, name string) (url.Values, error) {
	query := url.Values{"groupId": {group}, "name": {name}}
	if o.MaxCharge > 0 {
		query.Set("maxChargeMicros", fmt.Sprint(o.MaxCharge))
	}
	if o.Pagination.Type == "" {
		fields, err := json.Marshal(o.Fields)
		query.Set("itemsConfig", string(fields))
		query.Set("type", string(o.Kind))
		return query, err
	}
	template := Scraper{GroupRef: group,
		Scraper: model.Scraper{Name: "template of " + name, Type: o.Kind,
			ItemsConfig: o.Fields,
			SourceConfig: model.SourceConfig{URL: "http://template.example/",
				Pagination: &o.Pagination}}}
	id, err := who.PutScraper(ctx, template)
	query.Set("templateScraperId", id)
	return query, err
}

// Body returns the order's list as a request body.
func (o Order) Body() io.Reader { return strings.NewReader(strings.Join(o.URLs, "\n")) }
