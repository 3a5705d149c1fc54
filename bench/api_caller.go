package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/valyala/fasthttp"

	"shoal.dev/shoal/testkit/api"
)

// caller makes a load's calls with one credential. It shares processors with the service and leaves
// them to it, so it reuses connections and buffers.
type caller struct {
	server     *fasthttp.HostClient
	credential string
}

// newCallers makes a caller for each client. They share their connections.
func newCallers(clients []api.Client) []caller {
	callers := make([]caller, 0, len(clients))
	var server *fasthttp.HostClient
	for _, client := range clients {
		if server == nil {
			server = &fasthttp.HostClient{Addr: strings.TrimPrefix(client.Server, "http://"),
				MaxConns: 2 * loadWorkers, ReadTimeout: callTimeout, WriteTimeout: callTimeout}
		}
		callers = append(callers, caller{server: server, credential: "Bearer " + client.Token})
	}
	return callers
}

// read requests a path, and ignores the answer.
func (c caller) read(path string) error {
	return c.call(http.MethodGet, path, nil)
}

// putGroup makes a group.
func (c caller) putGroup(name string) error {
	body, err := json.Marshal(map[string]any{"name": name, "dataTable": "rows",
		"startType": "MANUAL", "shouldMatchProducts": false})
	if err != nil {
		return fmt.Errorf("a group: %w", err)
	}
	return c.call(http.MethodPut, "/api/scraper/group", body)
}

func (c caller) call(method, path string, body []byte) error {
	request, answer := fasthttp.AcquireRequest(), fasthttp.AcquireResponse()
	defer fasthttp.ReleaseRequest(request)
	defer fasthttp.ReleaseResponse(answer)
	request.Header.SetMethod(method)
	request.SetRequestURI("http://" + c.server.Addr + path)
	request.Header.Set("Authorization", c.credential)
	if body != nil {
		request.Header.SetContentType("application/json")
		request.Header.Set("Idempotency-Key", api.NewKey())
		request.SetBodyRaw(body)
	}
	if err := c.server.Do(request, answer); err != nil {
		return fmt.Errorf("%s %s: %w", method, path, err)
	}
	if answer.StatusCode()/100 != 2 {
		return fmt.Errorf("%s %s: %d %s", method, path, answer.StatusCode(), answer.Body())
	}
	return nil
}
