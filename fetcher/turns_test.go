package fetcher

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"shoal.dev/shoal/pkg/extract"
)

// Pages of one customer that cost CPU wait for each other. A page of another customer that comes
// later waits for one of them.
func TestCustomersTakeTurnsAtExtractions(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var mu sync.Mutex
		var read []string
		busy := make(chan struct{})
		r, stop := start(t, 1, title, func(r *rig, config *Config) {
			config.Extractions = 1
			config.Reading = func(p extract.Page) {
				mu.Lock()
				read = append(read, p.URL)
				first := len(read) == 1
				mu.Unlock()
				if first {
					<-busy
				}
			}
		})
		defer stop()
		send := func(seq int, customer, url string) {
			task := r.task(seq, url)
			task.Customer = customer
			r.send(task)
		}
		for i, host := range []string{"a", "b", "c", "d", "e", "f"} {
			send(i, "costly", "http://"+host+".costly/")
		}
		synctest.Wait()
		send(6, "other", "http://a.other/")
		send(7, "other", "http://b.other/")
		synctest.Wait()
		close(busy)
		r.pages(8)
		var order []string
		for _, url := range read {
			order = append(order, strings.TrimSuffix(url[len("http://a."):], "/"))
		}
		if want := []string{"costly", "costly", "other", "costly", "other", "costly", "costly",
			"costly"}; !slices.Equal(order, want) {
			t.Errorf("pages of these customers were read: %v, want %v", order, want)
		}
	})
}
