package controlplane

import (
	"bufio"
	"bytes"
	"strconv"
	"strings"
	"testing"
)

// next reads a stream up to its next id.
func next(t *testing.T, stream *bufio.Scanner) (event string, data []byte, id uint64) {
	t.Helper()
	for stream.Scan() {
		name, value, _ := strings.Cut(stream.Text(), ": ")
		switch name {
		case "event":
			event = value
		case "data":
			data = []byte(value)
		case "id":
			id, _ = strconv.ParseUint(value, 10, 64)
		case "":
			if id != 0 {
				return event, data, id
			}
		}
	}
	t.Fatalf("the stream has ended: %v", stream.Err())
	return "", nil, 0
}

// TestStreamsGoOnAtOtherServers: a stream tells what happens at another server. If its server dies,
// it goes on at another one, which tells what was missed, or to load everything again.
func TestStreamsGoOnAtOtherServers(t *testing.T) {
	t.Parallel()
	c := newNodes(t, 1, 3)
	openCustomer(t, c.at(0), "ann")
	dir := t.TempDir()
	first, second, third := c.serveAPI(t, 1, dir), c.serveAPI(t, 2, dir), c.serveAPI(t, 3, dir)
	tab := second.follow(0) // what a server knows of the past, it knows from another stream
	next(t, tab)
	stream := first.follow(0)
	_, _, began := next(t, stream)
	second.pays(7)
	event, data, id := next(t, stream)
	if event != "wallet.updated" || !bytes.Contains(data, []byte(`"balanceMicros":7,`)) ||
		id <= began {
		t.Errorf("another server's change is %s %s, %d after %d", event, data, id, began)
	}
	first.kill()
	c.kill(1)
	second.pays(5)
	if event, data, now := next(t, second.follow(id)); event != "wallet.updated" ||
		!bytes.Contains(data, []byte(`"balanceMicros":12,`)) || now <= id {
		t.Errorf("it goes on with %s %s, %d after %d", event, data, now, id)
	}
	fresh(t, c.at(3)) // it has the payment
	unaware := third.follow(id)
	if event, _, now := next(t, unaware); event != "resync" || now < id {
		t.Errorf("at a server without a past it goes on with %s, %d after %d", event, now, id)
	}
	second.pays(3)
	for event != "wallet.updated" || !bytes.Contains(data, []byte(`"balanceMicros":15,`)) {
		event, data, _ = next(t, unaware)
	}
}
