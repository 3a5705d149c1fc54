package operation

import (
	"bytes"
	"io"
	"os"
	"testing"

	"github.com/valyala/fasthttp"

	"shoal.dev/shoal/apiserver/internal/auth"
	"shoal.dev/shoal/pkg/fault"
)

// A long answer waits for its client on disk, in its customer's share; a short one waits in memory.
func TestLongAnswersWaitOnDisk(t *testing.T) {
	for _, test := range []struct {
		bytes int
		waits bool
	}{{spooledFrom - 1, false}, {spooledFrom, true}, {8 * spooledFrom, true}} {
		c := &Chain{SpoolDir: t.TempDir(), free: func(string) (uint64, bool) { return 0, false }}
		x := &exchange{Chain: c, rc: &fasthttp.RequestCtx{},
			from: Caller{Principal: auth.Principal{Customer: "ann"}}}
		data := bytes.Repeat([]byte("0123456789"), test.bytes/10+1)[:test.bytes]
		if err := x.send(data); err != nil {
			t.Fatal(err)
		}
		if held := c.spools.ofOne["ann"]; x.rc.Response.IsBodyStream() != test.waits ||
			(held == int64(test.bytes)) != test.waits {
			t.Errorf("%d bytes: waits on disk %v, %d bytes are held", test.bytes,
				x.rc.Response.IsBodyStream(), held)
		}
		if names, err := os.ReadDir(c.SpoolDir); err != nil || len(names) != 0 {
			t.Errorf("files with names: %v, %v", names, err)
		}
		var got []byte
		if test.waits {
			var err error
			if got, err = io.ReadAll(x.rc.Response.BodyStream()); err != nil {
				t.Fatal(err)
			}
		} else {
			got = x.rc.Response.Body()
		}
		if !bytes.Equal(got, data) {
			t.Errorf("%d bytes: %d others are sent", test.bytes, len(got))
		}
		body, _ := x.rc.Response.BodyStream().(io.Closer)
		if err := x.rc.Response.CloseBodyStream(); err != nil {
			t.Fatal(err)
		}
		if test.waits { // others may close it again
			if err := body.Close(); err != nil {
				t.Errorf("closed again: %v", err)
			}
		}
		if c.spools.all != 0 {
			t.Errorf("%d bytes stay taken", c.spools.all)
		}
	}
}

func TestLongAnswerWithoutRoom(t *testing.T) {
	c := &Chain{SpoolDir: t.TempDir(), spools: spools{reserve: spoolReserve},
		free: func(string) (uint64, bool) { return spoolReserve, true }}
	x := &exchange{Chain: c, rc: &fasthttp.RequestCtx{},
		from: Caller{Principal: auth.Principal{Customer: "ann"}}}
	if err := x.send(make([]byte, spooledFrom)); fault.CodeOf(err) != fault.Unavailable ||
		c.spools.all != 0 {
		t.Errorf("%v, %d bytes are taken", err, c.spools.all)
	}
}
