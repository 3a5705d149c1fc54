package runs_test

import (
	"context"
	"reflect"
	"strings"
	"testing"
	"time"

	"shoal.dev/shoal/apiserver"
	"shoal.dev/shoal/apiserver/internal/apitest"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/cache"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
)

// askedValues has a sample of every key, and remembers the key that was asked for.
type askedValues struct {
	cache.Values
	key string
}

func (v *askedValues) Get(_ context.Context, key string) ([]byte, bool) {
	v.key = key
	return []byte(`{"rows":[]}`), true
}

// scraperChange changes a member of a scraper.
type scraperChange struct {
	kept bool // a sample from before the change is still right
	base func(s *model.Scraper, schema ids.ID)
	make func(s *model.Scraper, schema ids.ID)
}

// scraperChanges are the members of a scraper, by their path.
var scraperChanges = map[string]scraperChange{
	"name":             {kept: true, make: func(s *model.Scraper, _ ids.ID) { s.Name = "other" }},
	"schedule":         {kept: true, make: scheduled},
	"scheduleTimezone": {kept: true, base: scheduled, make: inBerlin},
	"type": {make: func(s *model.Scraper, _ ids.ID) {
		s.Type = model.MultipleProducts
	}},
	"itemsConfig": {make: func(s *model.Scraper, _ ids.ID) {
		s.ItemsConfig = []model.Field{{Name: "title", Selector: "h2", Kind: model.Text}}
	}},
	"postProcessRules": {make: func(s *model.Scraper, _ ids.ID) {
		s.PostProcessRules = []model.PostProcessRule{{Kind: "REGEX_CLEAN", SourceField: "title",
			OutputField: "clean", Params: map[string]any{"pattern": "x"}}}
	}},
	"schema": {make: func(s *model.Scraper, schema ids.ID) {
		s.Type, s.ItemsConfig, s.Schema = model.AIConf, nil, &model.SchemaRef{ID: schema.String()}
	}},
	"sourceConfig.url": {make: func(s *model.Scraper, _ ids.ID) {
		s.SourceConfig.URL = "https://shop.test/2"
	}},
	"sourceConfig.pagination": {make: func(s *model.Scraper, _ ids.ID) {
		s.SourceConfig.Pagination = &model.Pagination{Type: model.InfiniteScroll}
	}},
	"sourceConfig.curl": {base: curled, make: func(s *model.Scraper, _ ids.ID) {
		s.SourceConfig.Curl = "curl https://shop.test/ -H 'Cookie: a=2'"
	}},
	"sourceConfig.prelaunch": {base: curled, make: func(s *model.Scraper, _ ids.ID) {
		s.SourceConfig.Prelaunch = &model.Prelaunch{DiscoveryURL: "https://shop.test/token"}
	}},
	"sourceConfig.tryWithHiddenData": {make: func(s *model.Scraper, _ ids.ID) {
		s.SourceConfig.TryWithHiddenData = true
	}},
	"sourceConfig.queries": {base: asking, make: func(s *model.Scraper, _ ids.ID) {
		s.SourceConfig.Queries = []string{"table"}
	}},
	"sourceConfig.engine": {base: asking, make: func(s *model.Scraper, _ ids.ID) {
		s.SourceConfig.Engine = "second"
	}},
	"config.retentionCount": {kept: true, make: func(s *model.Scraper, _ ids.ID) {
		s.Config = &model.ScraperConfig{RetentionCount: new(3)}
	}},
	"config.politeness": {make: func(s *model.Scraper, _ ids.ID) {
		s.Config = &model.ScraperConfig{Politeness: &model.Politeness{IgnoreRobots: true}}
	}},
	"config.endpointTag": {make: func(s *model.Scraper, _ ids.ID) {
		s.Config = &model.ScraperConfig{EndpointTag: model.ProductPageTag}
	}},
	"config.tiers": {make: func(s *model.Scraper, _ ids.ID) {
		s.Config = &model.ScraperConfig{Tiers: []string{"plain"}}
	}},
	"config.keepBodyDays": {make: func(s *model.Scraper, _ ids.ID) { // part of the recipe
		s.Config = &model.ScraperConfig{KeepBodyDays: new(3)}
	}},
}

func scheduled(s *model.Scraper, _ ids.ID) { s.Schedule = "0 6 * * *" }

func inBerlin(s *model.Scraper, _ ids.ID) {
	s.Schedule, s.ScheduleTimezone = "0 6 * * *", "Europe/Berlin"
}

func curled(s *model.Scraper, _ ids.ID) {
	s.SourceConfig = model.SourceConfig{Curl: "curl https://shop.test/ -H 'Cookie: a=1'"}
}

func asking(s *model.Scraper, _ ids.ID) {
	s.Type, s.ItemsConfig = model.SearchEngineSearch, nil
	s.SourceConfig = model.SourceConfig{Queries: []string{"chair"}, Engine: "first"}
}

// membersOf returns the paths of the members that a body may have.
func membersOf(of reflect.Type, path string) (paths []string) {
	for field := range of.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch field.Type {
		case reflect.TypeFor[model.SourceConfig]():
			paths = append(paths, membersOf(field.Type, name+".")...)
		case reflect.TypeFor[*model.ScraperConfig]():
			paths = append(paths, membersOf(field.Type.Elem(), name+".")...)
		default:
			if name != "-" {
				paths = append(paths, path+name)
			}
		}
	}
	return paths
}

// TestCachedSampleIsOfTheScraperAsItIs changes every member of a scraper. A sample of the scraper
// before the change may be returned only if the member decides nothing about its rows.
func TestCachedSampleIsOfTheScraperAsItIs(t *testing.T) {
	values := &askedValues{}
	r := startSearch(t, withEngines,
		func(config *apiserver.Config) { config.Values = values })
	schema := client.PutSchema{ID: r.IDs.New(), Customer: "alice", Name: "s", Version: 1,
		Type: "PRODUCT", Content: []byte(`{"type":"object","properties":{"title":{}}}`)}
	r.Client.Must(t, schema)
	keyOf := func(scraper ids.ID) string {
		r.Run(t, apitest.Scenario{Name: "sample", As: apitest.User, Status: 200,
			Do: "GET /api/scraper/" + scraper.String() + "/get-sample-data?useCache=true"})
		return values.key
	}
	for _, member := range membersOf(reflect.TypeFor[model.Scraper](), "") {
		t.Run(member, func(t *testing.T) {
			change, known := scraperChanges[member]
			if !known {
				t.Fatal("does it decide what a sample has? Say so in scraperChanges")
			}
			put := client.PutScraper{Create: true, ID: r.IDs.New(), Customer: "alice",
				Group: r.group, Spec: model.Scraper{Name: member, Type: model.SingleProduct,
					SourceConfig: model.SourceConfig{URL: "https://shop.test/"},
					ItemsConfig:  fields}}
			if change.base != nil {
				change.base(&put.Spec, schema.ID)
			}
			r.Client.Must(t, put)
			before := keyOf(put.ID)
			put.Create = false
			change.make(&put.Spec, schema.ID)
			r.Clock.Advance(time.Second)
			r.Client.Must(t, put)
			if after := keyOf(put.ID); (after == before) != change.kept {
				t.Errorf("before %s, after %s", before, after)
			}
		})
	}
	put := client.PutScraper{Create: true, ID: r.IDs.New(), Customer: "alice", Group: r.group,
		Spec: model.Scraper{Name: "moves", Type: model.SingleProduct, ItemsConfig: fields,
			SourceConfig: model.SourceConfig{URL: "https://shop.test/"}}}
	r.Client.Must(t, put)
	before := keyOf(put.ID)
	put.Create, put.Group = false, r.NewGroup(t, "alice", "another")
	r.Client.Must(t, put)
	if after := keyOf(put.ID); after != before {
		t.Errorf("another group: before %s, after %s", before, after)
	}
}
