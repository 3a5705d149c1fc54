package data_test

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"shoal.dev/shoal/apiserver/internal/apitest"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/pkg/rowstore"
	"shoal.dev/shoal/pkg/work"
)

// An export that breaks off after any row goes on there. Both parts together are the bytes of the
// whole export, although rows with new columns come in meanwhile.
func TestExportsGoOn(t *testing.T) { onStores(t, goOnAnywhere) }

func goOnAnywhere(t *testing.T, store rowstore.Store) {
	r := startOn(t, store)
	r.configure(t, "sku", "name")
	r.run(t, r.other, `{"n":9,"text":"two\nlines, \"quoted\""}`, `{"more":[1,"a\nb"],"_own":true}`,
		`{"n":10,"text":""}`)
	group, shop := "groupId="+r.group.String(), "scraperId="+r.shop.String()
	download := "/api/scraper/data/group/" + r.group.String() + "/download?"
	few := r.group
	r.group = r.NewGroup(t, "alice", "many")
	r.fill(t, 2_500)
	many := "groupId=" + r.group.String()
	r.group = few
	const export = "/api/scraper/data/export?"
	for _, path := range []string{export + group, export + "format=jsonl&" + group,
		export + "bom=true&fields=text,n&" + group, export + "guard=false&sort=n,desc&" + group,
		export + "format=jsonl&fields=n,text&sort=text,asc&" + group,
		export + "isLastRun=true&" + group, export + "limit=3&" + shop,
		export + "format=jsonl&limit=4&" + group + "&" + filters(`{"n":{"gt":1}}`),
		export + "format=jsonl&jobId=" + r.jobs[0].String(), export + "fields=none&" + group,
		export + "without=text,n&" + group,
		download + "format=csv", download + "format=jsonl",
		export + many, export + "format=jsonl&" + many, export + "sort=price,asc&" + many} {
		t.Run(path, func(t *testing.T) { r.goOn(t, path) })
	}
}

// configure gives a scraper these fields.
func (r *rig) configure(t *testing.T, fields ...string) {
	t.Helper()
	spec := model.Scraper{Name: "shop", Type: model.SingleProduct}
	for _, name := range fields {
		spec.ItemsConfig = append(spec.ItemsConfig,
			model.Field{Name: name, Selector: "b", Kind: model.Text})
	}
	r.Client.Must(t, client.PutScraper{ID: r.shop, Customer: "alice", Group: r.group, Spec: spec})
}

// goOn cuts an export at many rows, and each rest once more.
func (r *rig) goOn(t *testing.T, path string) {
	t.Helper()
	read := func(query string) (body []byte, cursor string) {
		a := r.Call(t, apitest.Scenario{As: apitest.Reader, Do: "GET " + path + query})
		if cursor = a.Header.Get("Shoal-Cursor"); a.Status != 200 || cursor == "" {
			t.Fatalf("%s: %d %s", query, a.Status, a.Body)
		}
		return a.Body, cursor
	}
	whole, cursor := read("")
	r.run(t, r.shop, `{"n":11,"later":"x"}`, `{"n":0,"price":"1"}`)
	ends := rowEnds(t, whole)
	rows := len(ends) - 1
	if rows < 2 {
		t.Fatalf("%d rows in %q", rows, whole)
	}
	cuts := []int{0, 1, rows - 1, rows, rand.IntN(rows), rand.IntN(rows)}
	if rows <= 20 {
		for n := range rows {
			cuts = append(cuts, n)
		}
	}
	for _, n := range cuts {
		rest, next := read(fmt.Sprintf("&cursor=%s&skip=%d", cursor, n))
		if !bytes.Equal(rest, whole[ends[n]:]) {
			t.Errorf("after %d rows: %q, want %q", n, rest, whole[ends[n]:])
		}
		more := n + rand.IntN(rows-n+1)
		if last, _ := read(fmt.Sprintf("&cursor=%s&skip=%d", next, more)); !bytes.Equal(last,
			whole[ends[more]:]) {
			t.Errorf("after %d, then %d rows: %q", n, more, last)
		}
	}
}

// rowEnds lists where each row of a csv or jsonl ends, after the beginning.
func rowEnds(t *testing.T, body []byte) []int {
	t.Helper()
	ends := []int{0}
	if body[0] == '{' {
		for line := range bytes.Lines(body) {
			ends = append(ends, ends[len(ends)-1]+len(line))
		}
		return ends
	}
	records := csv.NewReader(bytes.NewReader(body))
	for header := true; ; header = false {
		_, err := records.Read()
		if errors.Is(err, io.EOF) {
			return ends
		}
		if err != nil {
			t.Fatal(err)
		}
		if !header {
			ends = append(ends, int(records.InputOffset()))
		}
	}
}

// began exports rows and returns a call that continues after the first of them.
func (r *rig) began(t *testing.T, query string) (path string) {
	t.Helper()
	path = "GET /api/scraper/data/export?" + query
	return path + "&skip=1&cursor=" + r.Call(t, apitest.Scenario{As: apitest.Reader,
		Do: path}).Header.Get("Shoal-Cursor")
}

// A call that continues no export, or another one, is refused.
func TestExportsThatAreNotContinued(t *testing.T) {
	r := start(t)
	r.share(t)
	group := "groupId=" + r.group.String()
	export := "GET /api/scraper/data/export?" + group
	csvs, lines := r.began(t, group), r.began(t, "format=jsonl&"+group)
	named := r.began(t, "fields=n,name&"+group)
	thin := r.began(t, "without=more,n&"+group)
	rest := thin[strings.Index(thin, "&cursor="):]
	_, cursor, _ := strings.Cut(csvs, "&cursor=")
	read := "GET /api/scraper/data?" + group + "&limit=1"
	page := r.Call(t, apitest.Scenario{As: apitest.Reader, Do: read}).Text("nextCursor")
	goesOn := func(call string) apitest.Scenario {
		return apitest.Scenario{Name: call, As: apitest.Reader, Do: call, Status: 200}
	}
	invalid := func(field, call string) apitest.Scenario {
		return apitest.Scenario{Name: call, As: apitest.Reader, Do: call, Status: 400,
			Code: "invalid_request", Has: map[string]any{"errors.0.field": field}}
	}
	refused := func(call string) apitest.Scenario {
		return apitest.Scenario{Name: call, As: apitest.Reader, Do: call, Status: 400,
			Code: "invalid_cursor", Has: map[string]any{"errors.0.field": "cursor"}}
	}
	foreign := refused(csvs)
	foreign.As = apitest.Other
	ended := goesOn(export + "&skip=8&cursor=" + cursor)
	ended.Check = func(t *testing.T, a apitest.Answer) {
		if len(a.Body) > 0 {
			t.Errorf("%q follows the last row", a.Body)
		}
	}
	r.Run(t, goesOn(csvs), goesOn(lines), goesOn(named), ended, foreign,
		invalid("cursor", export+"&skip=1"), invalid("skip", export+"&skip=-1&cursor="+cursor),
		invalid("skip", export+"&skip=9&cursor="+cursor),
		invalid("skip", strings.Replace(lines, "&skip=1", "&skip=9", 1)),
		invalid("cursor", csvs+"&format=xlsx"), invalid("cursor", csvs+"&format=parquet"),
		refused(csvs+"&format=jsonl"), refused(csvs+"&fields=n"), refused(named+"&fields=sku"),
		refused(csvs+"&without=n"), goesOn(thin), goesOn(export+"&without=n,more"+rest),
		refused(export+"&without=n"+rest),
		refused(csvs+"&limit=9"), refused(csvs+"&guard=false"), refused(csvs+"&bom=true"),
		refused(csvs+"&sort=n"), refused(csvs+"&isLastRun=true"),
		refused(csvs+"&scraperId="+r.shop.String()),
		refused(csvs+"&"+filters(`{"n":{"gt":0}}`)), refused(csvs[:len(csvs)-1]),
		refused(export+"&cursor="+page), refused(read+"&cursor="+cursor))
	for _, format := range []string{"xlsx", "parquet"} {
		s := goesOn(export + "&format=" + format)
		s.Headers = map[string]string{"Shoal-Cursor": ""}
		r.Run(t, s)
	}
	r.configure(t, "sku") // a new first column
	r.Run(t, refused(csvs), goesOn(lines), goesOn(named))
}

// An export is not continued once some of its rows are gone, even if the client has those. It
// would miss as many others. Exports of other rows continue.
func TestExportsOfRowsThatWent(t *testing.T) {
	for name, remove := range map[string]func(*testing.T, *retaining){
		"deleted": func(t *testing.T, r *retaining) { r.deleteRun(t, r.jobs[2]) },
		"removed": func(t *testing.T, r *retaining) {
			if err := r.store.DeleteJob(t.Context(), r.jobs[2], false); err != nil {
				t.Fatal(err)
			}
		},
		"replaced": func(t *testing.T, r *retaining) {
			r.run(t, r.shop, `{"n":9}`)
			r.rest(t)
		},
		"expired": func(t *testing.T, r *retaining) {
			r.work(t, work.Expire, func([]byte) []byte {
				return rowstore.NoteExpiry(time.UnixMicro(2))
			})
		},
		"nothing": func(*testing.T, *retaining) {},
	} {
		for _, format := range []string{"csv", "jsonl"} {
			t.Run(name+", "+format, func(t *testing.T) {
				r := startRetaining(t, apitest.NewStore(t))
				r.Client.Must(t, client.PutRetention{Customer: "alice", Scraper: r.shop, Count: 1})
				r.rest(t)
				r.work(t, work.Expire, func([]byte) []byte { // all rows expire soon
					return rowstore.NoteExpiry(time.UnixMicro(1))
				})
				query := "format=" + format + "&scraperId="
				shop := r.began(t, query+r.shop.String())
				other := r.began(t, query+r.other.String())
				latest := r.began(t, "isLastRun=true&"+query+r.shop.String())
				remove(t, r)
				goes := []string{other}
				if name == "nothing" {
					goes = append(goes, shop, latest)
				}
				for _, call := range []string{shop, latest, other} {
					s := apitest.Scenario{Name: call, As: apitest.Reader, Do: call, Status: 200}
					if name == "expired" || !slices.Contains(goes, call) {
						s.Status, s.Code = 400, "invalid_cursor"
					}
					r.Run(t, s)
				}
			})
		}
	}
}

// A move back changes the order in which a scraper's groups are read, although all rows are there.
func TestExportsOfMovedScraper(t *testing.T) {
	r := start(t)
	first, second := r.group, r.NewGroup(t, "alice", "second")
	query := "scraperId=" + r.shop.String()
	r.group = second
	r.configure(t) // moves it
	r.run(t, r.shop, `{"n":9}`)
	before := r.began(t, query)
	r.group = r.NewGroup(t, "alice", "third")
	r.configure(t)
	r.Run(t, apitest.Scenario{Name: "moved on", As: apitest.Reader, Do: before, Status: 200})
	r.group = first
	r.configure(t)
	r.Run(t, apitest.Scenario{Name: "moved back", As: apitest.Reader, Do: before, Status: 400,
		Code: "invalid_cursor"})
}

// The rest of an export breaks off, too, if rows are removed while it is read.
func TestRestsOfRowsThatGo(t *testing.T) {
	store := &scanned{Store: apitest.NewStore(t)}
	r := startOn(t, store)
	long := strings.Repeat("x", 900_000)
	for n := range 2 {
		r.run(t, r.other, fmt.Sprintf(`{"n":%d,"text":"%s"}`, n, long),
			fmt.Sprintf(`{"n":%d,"text":"%s"}`, n+2, long))
	}
	store.expect(0, nil)
	_, path, _ := strings.Cut(r.began(t, "format=jsonl&scraperId="+r.other.String()), " ")
	for _, removed := range []bool{false, true} {
		store.expect(0, func(now int) {
			if now == 2 && removed {
				err := store.DeleteJob(t.Context(), r.jobs[len(r.jobs)-1], false)
				if err != nil {
					t.Error(err)
				}
			}
		})
		if body, err := r.get(t, path); (err != nil) != removed {
			t.Errorf("removed %t: %d bytes, %v", removed, len(body), err)
		}
	}
}
