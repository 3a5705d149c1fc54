package egress

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
)

// benchServer answers every request with the same 28 KB page, in as few instructions as possible:
// only the client is to be measured.
func benchServer(b testing.TB) string {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	body := bytes.Repeat([]byte("<div class=\"item\">A product</div>"), 28_514/33)
	page := []byte("HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n")
	page = append(fmt.Appendf(page, "Content-Length: %d\r\n\r\n", len(body)), body...)
	var running sync.WaitGroup
	running.Go(func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			running.Go(func() {
				defer c.Close()
				request := make([]byte, 4096)
				for {
					if _, err := c.Read(request); err != nil {
						return
					}
					if _, err := c.Write(page); err != nil {
						return
					}
				}
			})
		}
	})
	b.Cleanup(func() { listener.Close(); running.Wait() })
	return listener.Addr().String()
}

// The two benchmarks below compare one exchange of this client with one of fasthttp's client, on
// the same server.

func BenchmarkDo(b *testing.B) {
	c := newClient(b, Config{Origins: map[string]string{"*.example": benchServer(b)}})
	url := "http://shop.example/p/12345"
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	b.ReportAllocs()
	for b.Loop() {
		resp, err := c.Do(ctx, &Request{URL: url, Deadline: time.Now().Add(10 * time.Second)})
		if err != nil || resp.Status != 200 {
			b.Fatal(resp, err)
		}
		io.Discard.Write(resp.Body)
		resp.Release()
	}
}

func BenchmarkFasthttp(b *testing.B) {
	url := "http://" + benchServer(b) + "/p/12345"
	client := &fasthttp.Client{}
	defer client.CloseIdleConnections()
	b.ReportAllocs()
	for b.Loop() {
		req, resp := fasthttp.AcquireRequest(), fasthttp.AcquireResponse()
		req.SetRequestURI(url)
		if err := client.DoDeadline(req, resp, time.Now().Add(10*time.Second)); err != nil {
			b.Fatal(err)
		}
		io.Discard.Write(resp.Body())
		fasthttp.ReleaseRequest(req)
		fasthttp.ReleaseResponse(resp)
	}
}

func BenchmarkCheckURL(b *testing.B) {
	c, err := New(Config{})
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	for b.Loop() {
		if err := c.CheckURL("https://www.shop-example.co.uk/category/shoes/product-12345.html?color=blue&size=42&ref=list"); err != nil {
			b.Fatal(err)
		}
	}
}
