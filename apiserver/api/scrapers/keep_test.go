package scrapers_test

import (
	"fmt"
	"testing"

	"shoal.dev/shoal/apiserver"
	"shoal.dev/shoal/apiserver/internal/apitest"
	"shoal.dev/shoal/pkg/blobstore"
)

// Bodies may be kept for 1 to 30 days if there is a store for them. Both forms show it.
func TestKeepBodyDays(t *testing.T) {
	blobs, err := blobstore.OpenDirectory(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = blobs.Close() }) // releases the directory's lock
	s := apitest.Start(t, apitest.WithStore(apitest.NewStore(t)),
		func(config *apiserver.Config) { config.Blobs = blobs })
	group := s.NewGroup(t, "alice", "g")
	for i, path := range []string{"/api/scraper", "/api/scraper/v2"} {
		for _, days := range []int{1, 30} {
			name := fmt.Sprintf("%d by %s", days, path)
			s.Run(t, apitest.Scenario{Name: name, As: apitest.User, Do: "PUT " + path,
				Header: key(fmt.Sprint(i, days)), Status: 200,
				Body: body(group, "name", name, "config",
					source(fmt.Sprintf(`{"keepBodyDays":%d}`, days))),
				Has: map[string]any{"config.keepBodyDays": days}})
		}
		s.Run(t, apitest.Scenario{Name: "too many by " + path, As: apitest.User,
			Do: "PUT " + path, Header: key(fmt.Sprint(i, 31)), Status: 400,
			Code: "schema_validation_failed",
			Body: body(group, "config", source(`{"keepBodyDays":31}`)),
			Has:  map[string]any{"errors.0.field": "config.keepBodyDays"}})
	}
}
