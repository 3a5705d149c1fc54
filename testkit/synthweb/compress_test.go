package synthweb_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/andybalholm/brotli"

	"shoal.dev/shoal/testkit/synthweb"
)

// readers are the decoders of the web's codings.
var readers = map[string]func(io.Reader) (io.Reader, error){
	"gzip": func(r io.Reader) (io.Reader, error) { return gzip.NewReader(r) },
	"br":   func(r io.Reader) (io.Reader, error) { return brotli.NewReader(r), nil },
}

func TestCompression(t *testing.T) {
	for name, config := range map[string]synthweb.Config{
		"products": {PageBytes: []int{1500, 2500, 28_000, 300_000}},
		"articles": {Mix: only(synthweb.Article), PageBytes: []int{10_000}},
		"JSON":     {Mix: only(synthweb.API), PageBytes: []int{28_000}},
		"JSON-LD":  {Mix: only(synthweb.LinkedData)},
		"listings": {Mix: only(synthweb.Listing), ItemsPerPage: 40},
		"template": {Template: []byte(strings.Repeat("<p>text</p>", 300) + "12345" +
			strings.Repeat("<b>12345</b>", 9) + strings.Repeat("<i>more text</i>", 300))},
	} {
		config.Hosts, config.PagesPerHost, config.Gzip, config.Brotli = 4, 4, true, true
		web := start(t, config)
		client := newClient(t, web)
		for coding, reader := range readers {
			t.Run(name+", "+coding, func(t *testing.T) {
				for address := range web.URLs(16) {
					if err := compressed(client, web, address, coding, reader); err != nil {
						t.Errorf("%s: %v", address, err)
					}
				}
			})
		}
		if got := client.mustGet(t, web.URL(0, 0)).header.Get("Content-Encoding"); got != "" {
			t.Errorf("%s: %s without being asked", name, got)
		}
	}
}

// compressed checks that a page is served in a coding, and is small in it.
func compressed(c *client, web *synthweb.Web, address, coding string,
	reader func(io.Reader) (io.Reader, error)) error {
	want, _, err := web.Body(address)
	if err != nil {
		return err
	}
	request, err := http.NewRequest(http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	request.Header.Set("Accept-Encoding", coding)
	response, err := c.http.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	sent, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	plain, err := reader(bytes.NewReader(sent))
	if err != nil {
		return err
	}
	body, err := io.ReadAll(plain)
	switch {
	case err != nil:
		return err
	case !bytes.Equal(body, want):
		return fmt.Errorf("the page differs after %d of %d bytes", len(body), len(want))
	case response.Header.Get("Content-Encoding") != coding:
		return fmt.Errorf("it says %q", response.Header)
	case len(want) > 6000 && len(sent) > len(want)/2:
		return fmt.Errorf("%d bytes have become %d", len(want), len(sent))
	}
	return nil
}
