package data_test

import (
	"testing"

	"shoal.dev/shoal/apiserver/internal/apitest"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
)

// The columns of a file are those of fields, schema and rules in order, whatever the first rows
// contain. They stay the same every day.
func TestColumnsAreThoseConfigured(t *testing.T) {
	r := start(t)
	schema := client.PutSchema{ID: ids.ID{7}, Customer: "alice", Name: "s", Version: 1,
		Type: "CUSTOM", Content: []byte(`{"type":"object","properties":{` +
			`"title":{"type":"string"},"_brand":{"type":"string"},"price":{"type":"number"},` +
			`"n":{"type":"integer"}}}`)}
	r.Client.Must(t, schema)
	rules := []model.PostProcessRule{
		{Kind: "CURRENCY_CONVERT", SourceField: "price", OutputField: "eur"},
		{Kind: "REGEX_CLEAN", SourceField: "title", OutputField: "clean"}}
	const ofRules = " eur eur_rate eur_rateDate clean _scrapedAt"
	for name, c := range map[string]struct {
		spec model.Scraper
		want string
	}{
		"schema": {model.Scraper{Type: model.AIConf,
			Schema: &model.SchemaRef{ID: schema.ID.String()}}, "title brand price n" + ofRules},
		"fields": {model.Scraper{Type: model.SingleProduct, ItemsConfig: []model.Field{
			{Name: "title", Selector: "h1", Kind: model.Text},
			{Name: "_brand", Selector: "b", Kind: model.Text},
			{Name: "n", Selector: "i", Kind: model.Text}}}, "title brand n" + ofRules},
	} {
		t.Run(name, func(t *testing.T) {
			c.spec.Name, c.spec.PostProcessRules = name, rules
			put := client.PutScraper{Create: true, ID: r.IDs.New(), Customer: "alice",
				Group: r.group, Spec: c.spec}
			r.Client.Must(t, put)
			r.run(t, put.ID, `{"n":1,"clean":"x"}`)
			r.run(t, put.ID,
				`{"n":2,"title":"x","clean":"x","eur":1,"eur_rate":1,"eur_rateDate":"d"}`,
				`{"n":3,"brand":"x"}`)
			last := len(r.jobs) - 1
			for _, format := range []string{"csv", "parquet"} {
				for job, numbers := range map[ids.ID]string{r.jobs[last-1]: "1",
					r.jobs[last]: "23"} {
					got := column(t, format, r.Call(t, apitest.Scenario{As: apitest.Reader,
						Do: exportPath + "?format=" + format + "&jobId=" + job.String()}).Body)
					if want := c.want + ": " + numbers; got != want {
						t.Errorf("%s: %s, want %s", format, got, want)
					}
				}
			}
		})
	}
}
