// Command colly is the bench's job for github.com/gocolly/colly: it reads the addresses of a file, and writes a row of each.
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

	"github.com/PuerkitoBio/goquery"
	"github.com/andybalholm/cascadia"
	"github.com/gocolly/colly/v2"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "colly:", err)
		os.Exit(1)
	}
}

// field is one of the row's. Its selector is compiled once, which ChildText would do for each page.
type field struct {
	name  string
	match goquery.Matcher
	attr  string
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
	fields := fieldsOf(len(args) > 3)
	c.OnHTML("html", func(e *colly.HTMLElement) { out.write(rowOf(e.DOM, fields)) })
	visitErr := visit(c, concurrency, strings.Fields(string(text)))
	return errors.Join(visitErr, out.err, out.to.Flush(), file.Close())
}

// newCollector leaves out what a list of addresses does not need: the memory of what was visited, and cookies. The
// transport is Go's default one, with as many kept connections as there are requests.
func newCollector(concurrency int) *colly.Collector {
	c := colly.NewCollector(colly.AllowURLRevisit(), colly.IgnoreRobotsTxt())
	c.DisableCookies()
	c.WithTransport(&http.Transport{MaxIdleConnsPerHost: concurrency, ReadBufferSize: 64 << 10, DisableCompression: true})
	return c
}

// visit has so many goroutines call the collector: its queue and its asynchronous mode take more for the same.
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

func fieldsOf(absent bool) []field {
	fields := []field{
		{name: "title", match: cascadia.MustCompile("h1.title")},
		{name: "price", match: cascadia.MustCompile("main .price")},
		{name: "sku", match: cascadia.MustCompile("div.sku")},
		{name: "stock", match: cascadia.MustCompile("div.stock")},
		{name: "canonical", match: cascadia.MustCompile("link[rel=canonical]"), attr: "href"},
	}
	if absent {
		fields = append(fields, field{name: "absent", match: cascadia.MustCompile("div.absent")})
	}
	return fields
}

func rowOf(page *goquery.Selection, fields []field) map[string]any {
	row := make(map[string]any, len(fields))
	for _, f := range fields {
		switch found := page.FindMatcher(goquery.SingleMatcher(f.match)); {
		case found.Length() == 0:
			row[f.name] = nil
		case f.attr != "":
			row[f.name] = found.AttrOr(f.attr, "")
		default:
			row[f.name] = strings.TrimSpace(found.Text())
		}
	}
	return row
}

// writer writes rows as lines, from any goroutine, and keeps its first error.
type writer struct {
	mu  sync.Mutex
	to  *bufio.Writer
	err error
}

func (w *writer) write(row map[string]any) {
	line, err := json.Marshal(row)
	w.mu.Lock()
	defer w.mu.Unlock()
	if err == nil {
		_, err = w.to.Write(append(line, '\n'))
	}
	w.err = errors.Join(w.err, err)
}
