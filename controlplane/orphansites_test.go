package controlplane

import (
	"testing"
	"time"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/ids"
)

// Versions that no site has are dropped, and so are link states of deleted sites. Those of a site,
// of another cluster, and of an open intake stay.
func TestOrphanedSitesAreDropped(t *testing.T) {
	t.Parallel()
	config := testConfig(t, t.TempDir())
	store := config.Store.(*lists)
	first := serve(t, config)
	customer, scraper := prepare(t, first, config)
	madeIn := func(d time.Duration) ids.ID {
		return ids.Random{Now: func() time.Time { return time.Now().Add(d) }}.New()
	}
	site, err := client.Do(patient(t), first, client.PutSite{ID: madeIn(time.Second),
		Customer: customer, Scraper: scraper, Version: madeIn(time.Second), Links: 1}, nil)
	if err != nil {
		t.Fatal(err)
	}
	first.stop()
	others, gone, young := madeIn(-time.Hour), madeIn(time.Second), madeIn(time.Hour)
	for _, id := range []ids.ID{others, gone, young} {
		store.sites[id], store.stated[id] = true, true
	}
	store.sites[site.Version], store.stated[site.ID] = true, true
	config.Boot = madeIn(time.Minute)
	has := func(id ids.ID) (version, states bool) {
		store.mu.Lock()
		defer store.mu.Unlock()
		return store.sites[id], store.stated[id]
	}
	dropOrphans(t, serve(t, config), func() bool {
		version, states := has(gone)
		return !version && !states
	})
	for name, id := range map[string]ids.ID{"others": others, "young": young} {
		if version, states := has(id); !version || !states {
			t.Errorf("%s: the version is there: %v, the states: %v", name, version, states)
		}
	}
	version, _ := has(site.Version)
	if _, states := has(site.ID); !version || !states {
		t.Errorf("of the site the version is there: %v, the states: %v", version, states)
	}
}
