package synthweb_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"shoal.dev/shoal/testkit/synthweb"
)

// BenchmarkPages uses kept connections and a minimal client, so that it mostly measures the web.
// Client and server share the processors.
func BenchmarkPages(b *testing.B) {
	page := strings.Repeat("<p>filler</p>", 28_000/13) + "12345"
	for name, config := range map[string]synthweb.Config{
		"product":  {},
		"template": {Template: []byte(page)},
	} {
		config.Hosts, config.PagesPerHost, config.Gzip, config.Brotli = 100, 1000, true, true
		for _, coding := range []string{"identity", "gzip", "br"} {
			b.Run(name+"/"+coding, func(b *testing.B) { benchmarkPages(b, config, coding) })
		}
	}
}

func benchmarkPages(b *testing.B, config synthweb.Config, coding string) {
	web := start(b, config)
	var requests [][]byte
	for address := range web.URLs(10_000) {
		host, path, _ := strings.Cut(strings.TrimPrefix(address, "http://"), "/")
		requests = append(requests, fmt.Appendf(nil, "GET /%s HTTP/1.1\r\nHost: "+
			"%s\r\nAccept-Encoding: %s\r\n\r\n", path, host,
			coding))
	}
	var next atomic.Int64
	b.SetParallelism(8)
	b.ReportAllocs()
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		conn, err := net.Dial("tcp", web.Addr())
		if err != nil {
			b.Error(err)
			return
		}
		defer conn.Close()
		reader := bufio.NewReaderSize(conn, 64<<10)
		for pb.Next() {
			if _, err := conn.Write(requests[next.Add(1)%int64(len(requests))]); err != nil {
				b.Error(err)
				return
			}
			if err := skipAnswer(reader); err != nil {
				b.Error(err)
				return
			}
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "pages/s")
}

// skipAnswer reads one answer with a Content-Length.
func skipAnswer(reader *bufio.Reader) error {
	length := 0
	for {
		line, err := reader.ReadSlice('\n')
		if err != nil {
			return err
		}
		line = bytes.TrimSpace(line)
		if len(line) == 0 {
			break
		}
		if value, ok := bytes.CutPrefix(line, []byte("Content-Length: ")); ok {
			if length, err = strconv.Atoi(string(value)); err != nil {
				return err
			}
		}
	}
	if length == 0 {
		return io.ErrUnexpectedEOF
	}
	_, err := reader.Discard(length)
	return err
}
