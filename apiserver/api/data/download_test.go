package data_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
	"github.com/xuri/excelize/v2"

	"shoal.dev/shoal/apiserver/internal/apitest"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/rowstore"
)

// A download has the rows of the newest runs as data.xlsx, configured fields first, or in another
// format under its name.
func TestDownload(t *testing.T) { onStores(t, downloaded) }

func downloaded(t *testing.T, store rowstore.Store) {
	r := startOn(t, store)
	r.Client.Must(t, client.PutScraper{ID: r.shop, Customer: "alice", Group: r.group,
		Spec: model.Scraper{Name: "shop", Type: model.SingleProduct,
			ItemsConfig: []model.Field{{Name: "sku", Selector: "b", Kind: model.Text}}}})
	path := "GET /api/scraper/data/group/" + r.group.String() + "/download"
	file := func(query, format, want string) apitest.Scenario {
		return apitest.Scenario{Name: query, As: apitest.Reader, Do: path + query, Status: 200,
			Headers: map[string]string{
				"Content-Disposition": `attachment; filename="data.` + format + `"`},
			Check: func(t *testing.T, a apitest.Answer) {
				if got := column(t, format, a.Body); got != want {
					t.Errorf("rows %s, want %s", got, want)
				}
			}}
	}
	refused := func(who, query string, status int, code string) apitest.Scenario {
		return apitest.Scenario{Name: code, As: who, Do: path + query, Status: status,
			Code: code}
	}
	foreign := refused(apitest.Other, "", 400, "not_found")
	foreign.Has = map[string]any{"errors.0.field": "id"}
	r.Run(t,
		file("", "xlsx", "sku n name _scrapedAt: 45678"),
		file("?format=parquet", "parquet", "sku n name _scrapedAt: 45678"),
		file("?format=csv", "csv", "sku n name _scrapedAt: 45678"),
		file("?"+filters(`{"n":{"$gt":6}}`), "xlsx", "sku n name _scrapedAt: 78"),
		file("?categories=&"+filters(`{"n":0}`), "xlsx", "sku: "),
		refused(apitest.Nobody, "", 401, "unauthorized"),
		foreign,
		refused(apitest.User, "?filters=x", 400, "invalid_filter"),
		refused(apitest.User, "?format=ods", 400, "invalid_request"),
		refused(apitest.User, "?categories=cheap", 400, "not_found"),
	)
}

// column decodes a file to "its columns: the n of its rows".
func column(t *testing.T, format string, body []byte) string {
	t.Helper()
	var table [][]string
	switch format {
	case "xlsx":
		book, err := excelize.OpenReader(bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = book.Close() }()
		if table, err = book.GetRows("data"); err != nil {
			t.Fatal(err)
		}
	case "csv":
		for line := range strings.Lines(string(body)) {
			table = append(table, strings.Split(strings.TrimSpace(line), ","))
		}
	case "parquet":
		table = parquetTable(t, body)
	}
	numbers, n := "", slices.Index(table[0], "n")
	for _, row := range table[1:] {
		numbers += row[n]
	}
	return strings.Join(table[0], " ") + ": " + numbers
}

func parquetTable(t *testing.T, body []byte) [][]string {
	t.Helper()
	in, err := parquet.OpenFile(bytes.NewReader(body), int64(len(body)))
	if err != nil {
		t.Fatal(err)
	}
	table := [][]string{nil}
	for _, column := range in.Root().Columns() {
		table[0] = append(table[0], column.Name())
	}
	reader := parquet.NewReader(in)
	defer func() { _ = reader.Close() }()
	rows := make([]parquet.Row, 10)
	for {
		n, err := reader.ReadRows(rows)
		for _, row := range rows[:n] {
			cells := make([]string, len(table[0]))
			for _, value := range row {
				cells[value.Column()] = fmt.Sprint(value)
			}
			table = append(table, cells)
		}
		if errors.Is(err, io.EOF) {
			return table
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// Rows that arrive while a file is made are not in it, in any format. A file with a failed part
// does not look complete.
func TestDownloadIsOfOneMoment(t *testing.T) {
	store := &scanned{Store: apitest.NewStore(t)}
	r := startOn(t, store)
	for range 3 {
		r.run(t, r.shop, `{"n":1,"text":"`+strings.Repeat("x", 900_000)+`"}`,
			`{"n":2,"text":"`+strings.Repeat("y", 900_000)+`"}`)
	}
	path := "/api/scraper/data/export?groupId=" + r.group.String() + "&fields=n&format="
	for _, format := range []string{"xlsx", "parquet", "csv"} {
		store.expect(0, func(int) { r.run(t, r.other, `{"n":9}`) })
		body, err := r.get(t, path+format)
		store.expect(0, nil)
		if err != nil {
			t.Fatal(err)
		}
		got := column(t, format, body)
		if got != "n: 12345678121212"+strings.Repeat("9", strings.Count(got, "9")) {
			t.Errorf("%s: %s", format, got)
		}
		again := column(t, format, must(r.get(t, path+format)))
		if strings.Count(again, "9") < strings.Count(got, "9")+3 {
			t.Errorf("%s: nothing came in: %s, then %s", format, got, again)
		}
		store.expect(2, nil)
		r.Run(t, apitest.Scenario{Name: format, As: apitest.Reader, Do: "GET " + path + format,
			Status: 500, Code: "internal_error"})
		store.expect(0, nil)
	}
}

func must(body []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return body
}
