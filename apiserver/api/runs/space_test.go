package runs_test

import (
	"sync/atomic"
	"testing"

	"shoal.dev/shoal/apiserver"
	"shoal.dev/shoal/apiserver/internal/apitest"
	"shoal.dev/shoal/pkg/telemetry"
)

// While disks are short, calls that need space are refused with that code, and all others are
// answered. The same calls with the same keys succeed once there is space.
func TestCallsWithoutSpace(t *testing.T) {
	r := start(t)
	shop := r.newScraper(t, "shop", "https://shop.test/").String()
	group := r.group.String()
	calls := []apitest.Scenario{
		{Name: "list", Do: listPath, Body: r.body()},
		{Name: "streamed list", Do: listPath + "?groupId=" + group + "&name=streamed" +
			"&templateScraperId=" + shop, Body: "https://shop.test/1\n",
			Header: map[string]string{"Content-Type": "text/uri-list"}},
		{Name: "run", Do: "POST /api/scraper/" + shop + "/run"},
		{Name: "group", Do: "POST /api/scraper/group/" + group + "/run"},
		{Name: "schema", Do: "PUT /api/schema/customer",
			Body: `{"name":"s","version":1,"type":"PRODUCT","content":{"properties":{"a":{"type":"string"}}}}`},
	}
	r.Client.Short(t, "row store")
	for _, call := range calls {
		call.As, call.Status, call.Code = apitest.User, 503, "out_of_space"
		call.Headers = map[string]string{"Retry-After": "60"}
		call.Header = with(call.Header, call.Name)
		r.Run(t, call)
	}
	r.Run(t,
		apitest.Scenario{Name: "ready", Do: "GET /readyz", Status: 200,
			Has: map[string]any{"status": "ok", "space": "short"}},
		apitest.Scenario{Name: "reads go on", As: apitest.User, Do: "GET /api/scraper/list",
			Status: 200},
		apitest.Scenario{Name: "stops go on", As: apitest.User, Header: key("stop"),
			Do: "POST /api/scraper/" + shop + "/stop", Status: 200})
	r.Client.Short(t, "")
	r.Run(t, apitest.Scenario{Name: "ready again", Do: "GET /readyz", Status: 200,
		Has: map[string]any{"space": "ok"}})
	for _, call := range calls {
		call.As, call.Status, call.Header = apitest.User, 200, with(call.Header, call.Name)
		call.Headers = map[string]string{"Idempotency-Replayed": ""} // not replayed
		r.Run(t, call)
	}
}

// with adds an idempotency key to headers.
func with(header map[string]string, name string) map[string]string {
	all := key(name)
	for member, value := range header {
		all[member] = value
	}
	return all
}

// A streamed list leaves exactly the floor free on the disk of the receiving server.
func TestStreamedListLeavesTheFloor(t *testing.T) {
	const step, floor = 4 << 20, 1 << 20
	var free atomic.Uint64
	free.Store(floor + step)
	disk := &telemetry.Disk{Floor: telemetry.NewFloor(floor),
		Free: func(string) (uint64, bool) { return free.Load(), true }}
	r := &rig{store: apitest.NewStore(t)}
	r.Server = apitest.Start(t, apitest.WithStore(r.store),
		func(config *apiserver.Config) { config.Disk = disk })
	r.group = r.NewGroup(t, "alice", "g")
	shop := r.newScraper(t, "shop", "https://shop.test/").String()
	call := apitest.Scenario{As: apitest.User, Status: 200, Do: listPath + "?groupId=" +
		r.group.String() + "&templateScraperId=" + shop + "&name=", Body: "https://shop.test/1\n",
		Header: map[string]string{"Content-Type": "text/uri-list"}}
	for name, short := range map[string]bool{"room": false, "short": true} {
		one := call
		if one.Name, one.Do = name, one.Do+name; short {
			one.Status, one.Code = 503, "out_of_space"
			free.Store(floor + step - 1)
		}
		r.Run(t, one)
		free.Store(floor + step)
	}
}
