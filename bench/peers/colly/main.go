// Command colly is the bench's job for github.com/gocolly/colly: it reads the addresses of a file,
// and writes one row for each.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"

	"github.com/gocolly/colly/v2"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "colly:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) < 3 {
		return errors.New("usage: colly ADDRESSES ROWS CONCURRENCY [absent]")
	}
	concurrency, err := strconv.Atoi(args[2])
	if err != nil {
		return err
	}
	text, err := os.ReadFile(args[0])
	if err != nil {
		return err
	}
	file, err := os.Create(args[1])
	if err != nil {
		return err
	}
	c := newCollector(concurrency)
	out := &writer{to: bufio.NewWriter(file)}
	absent := len(args) > 3
	c.OnHTML("html", func(e *colly.HTMLElement) {
		row := product{
			Title:     e.ChildText("h1.title"),
			Price:     strings.TrimSpace(e.DOM.Find("main .price").First().Text()), // one of many
			SKU:       e.ChildText("div.sku"),
			Stock:     e.ChildText("div.stock"),
			Canonical: e.ChildAttr("link[rel=canonical]", "href"),
		}
		if absent {
			row.Absent = e.ChildText("div.absent")
		}
		out.write(row)
	})
	visitErr := visit(c, concurrency, strings.Fields(string(text)))
	return errors.Join(visitErr, out.err, out.to.Flush(), file.Close())
}

// newCollector omits what a list of addresses does not need: the memory of visited addresses, and
// cookies. The transport is Go's default, with as many kept connections as requests.
func newCollector(concurrency int) *colly.Collector {
	c := colly.NewCollector(colly.AllowURLRevisit(), colly.IgnoreRobotsTxt())
	c.DisableCookies()
	c.WithTransport(&http.Transport{MaxIdleConnsPerHost: concurrency, ReadBufferSize: 64 << 10,
		DisableCompression: true})
	return c
}

// visit calls the collector from that many goroutines, one of the two ways in colly's example of
// parallel scraping. The other, its asynchronous mode with a limit, costs more for the same.
func visit(c *colly.Collector, concurrency int, addresses []string) error {
	next := make(chan string)
	failed := make(chan error, concurrency)
	var workers sync.WaitGroup
	for range concurrency {
		workers.Go(func() {
			for address := range next {
				if err := c.Visit(address); err != nil {
					failed <- fmt.Errorf("%s: %w", address, err)
					return
				}
			}
		})
	}
	defer workers.Wait()
	defer close(next)
	for _, address := range addresses {
		select {
		case next <- address:
		case err := <-failed:
			return err
		}
	}
	return nil
}

type product struct {
	Title     string `json:"title"`
	Price     string `json:"price"`
	SKU       string `json:"sku"`
	Stock     string `json:"stock"`
	Canonical string `json:"canonical"`
	Absent    string `json:"absent,omitempty"`
}

// writer writes rows as lines, from any goroutine, and keeps its first error.
type writer struct {
	mu  sync.Mutex
	to  *bufio.Writer
	err error
}

func (w *writer) write(row product) {
	line, err := json.Marshal(row)
	w.mu.Lock()
	defer w.mu.Unlock()
	if err == nil {
		_, err = w.to.Write(append(line, '\n'))
	}
	w.err = errors.Join(w.err, err)
}
