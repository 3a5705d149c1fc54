package hostile

import (
	"bytes"
	"compress/flate"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"math/big"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"
)

// Origin is a server that handles one connection at a time.
type Origin struct {
	Name string
	TLS  bool // it is requested over https
	// Serve handles an accepted connection until it returns.
	Serve func(c net.Conn)
	// Prepare makes what Serve sends, so that its time and memory are not attributed to the client.
	Prepare func()
	// Forget drops what Prepare made. Tests measure the heap, and a large live heap allows more
	// garbage.
	Forget func()
}

// body is what an origin sends; it is made on first use.
type body struct {
	mu   sync.Mutex
	make func() string
	text string // "": not made yet
}

func (b *body) get() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.text == "" {
		b.text = b.make()
	}
	return b.text
}

func (b *body) forget() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.text = ""
}

// sending is an origin that serves a body.
func sending(name string, make func() string, serve func(c net.Conn, text string)) Origin {
	b := &body{make: make}
	return Origin{Name: name, Prepare: func() { b.get() }, Forget: b.forget,
		Serve: func(c net.Conn) {
			request(c)
			serve(c, b.get())
		}}
}

// request reads the request's header.
func request(c net.Conn) {
	buffer := make([]byte, 8192)
	for seen := 0; seen < len(buffer); {
		n, err := c.Read(buffer[seen:])
		if seen += n; err != nil || bytes.Contains(buffer[:seen], []byte("\r\n\r\n")) {
			return
		}
	}
}

// says answers a request with a text, and ends the connection.
func says(text string) func(net.Conn) {
	return func(c net.Conn) { request(c); _, _ = io.WriteString(c, text) }
}

const okay = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n"

// endless answers with a head, and then repeats a text forever.
func endless(head, text string) func(net.Conn) {
	text = strings.Repeat(text, 1+4096/len(text))
	return func(c net.Conn) {
		request(c)
		if _, err := io.WriteString(c, head); err != nil {
			return
		}
		for {
			if _, err := io.WriteString(c, text); err != nil {
				return
			}
		}
	}
}

// drips answers byte by byte, forever.
func drips(head, text string) func(net.Conn) {
	return func(c net.Conn) {
		request(c)
		_, err := io.WriteString(c, head)
		for i := 0; err == nil; i++ {
			_, err = c.Write([]byte{text[i%len(text)]})
			waitRead(c, 20*time.Millisecond)
		}
	}
}

// waitRead waits for d, or until the other side closes.
func waitRead(c net.Conn, d time.Duration) {
	_ = c.SetReadDeadline(time.Now().Add(d))
	_, _ = c.Read(make([]byte, 1))
}

// hangs answers with a head, and then is silent until the other side gives up.
func hangs(head string) func(net.Conn) {
	return func(c net.Conn) {
		request(c)
		_, _ = io.WriteString(c, head)
		_,
			_ = io.Copy(io.Discard, c)
	}
}

// bombed is the size of an unpacked bomb, in MB: half as much again as the fetcher's body limit.
const bombed = 96

// deflatedZeros are the zeros of a bomb in DEFLATE (RFC 1951). After a flush each megabyte ends on
// a byte boundary. From the second on they are equal, so one is compressed and repeated.
func deflatedZeros() string {
	var body bytes.Buffer
	w, _ := flate.NewWriter(&body, flate.BestCompression) // fails only for invalid levels
	zeros, ends := make([]byte, 1<<20), [2]int{}
	for i := range ends {
		_, _ = w.Write(zeros)
		_ = w.Flush()
		ends[i] = body.Len()
	}
	_ = w.Close()
	all := body.String()
	return all[:ends[0]] + strings.Repeat(all[ends[0]:ends[1]], bombed-1) + all[ends[1]:]
}

// gzippedZeros are the zeros of a bomb in gzip (RFC 1952).
func gzippedZeros() string {
	sum, zeros := crc32.NewIEEE(), make([]byte, 1<<20)
	for range bombed {
		_, _ = sum.Write(zeros)
	}
	end := binary.LittleEndian.AppendUint32(nil, sum.Sum32())
	end = binary.LittleEndian.AppendUint32(end, bombed<<20)
	return "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff" + deflatedZeros() + string(end)
}

// zerosBy are the zeros of a bomb, compressed by a writer.
func zerosBy(compress func(w io.Writer) io.WriteCloser) string {
	var body bytes.Buffer
	w, zeros := compress(&body), make([]byte, 1<<20)
	for range bombed {
		_, _ = w.Write(zeros)
	}
	_ = w.Close()
	return body.String()
}

// bombs are origins that answer with many zeros, compressed.
func bombs() []Origin {
	var all []Origin
	for _, b := range []struct {
		name, coding string
		make         func() string
	}{
		{"gzip bomb", "gzip", gzippedZeros},
		{"deflate bomb", "deflate", deflatedZeros},
		{"brotli bomb", "br", func() string {
			return zerosBy(func(w io.Writer) io.WriteCloser {
				return brotli.NewWriterLevel(w, brotli.BestSpeed)
			})
		}},
		{"zstd bomb", "zstd", func() string {
			return zerosBy(func(w io.Writer) io.WriteCloser {
				z, _ := zstd.NewWriter(w, zstd.WithWindowSize(128<<20)) // a size that it supports
				return z
			})
		}},
	} {
		all = append(all, sending(b.name, b.make, func(c net.Conn, text string) {
			_, _ = fmt.Fprintf(c, "%sContent-Encoding: %s\r\nContent-Length: %d\r\n\r\n%s", okay,
				b.coding, len(text), text)
		}))
	}
	return all
}

func overTLS(config *tls.Config, serve func(net.Conn)) func(net.Conn) {
	return func(c net.Conn) {
		secure := tls.Server(c, config)
		_ = secure.SetDeadline(time.Now().Add(10 * time.Second))
		if secure.Handshake() == nil {
			serve(secure)
		}
	}
}

func certificate(until time.Time) (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: until.Add(-time.Hour),
		NotAfter: until, DNSNames: []string{"*.example"}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, err
}

// many repeats a text n times.
func many(n int, text string) string { return strings.Repeat(text, n) }

// Origins returns all origins: first those that break the protocol, then one for each of Pages.
func Origins() ([]Origin, error) {
	good, err := certificate(time.Now().Add(time.Hour))
	if err != nil {
		return nil, fmt.Errorf("hostile: make a certificate: %w", err)
	}
	expired, err := certificate(time.Now().Add(-time.Hour))
	if err != nil {
		return nil, fmt.Errorf("hostile: make a certificate: %w", err)
	}
	chunked := okay + "Transfer-Encoding: chunked\r\n\r\n"
	all := []Origin{}
	for _, o := range []struct {
		name  string
		tls   bool
		serve func(net.Conn)
	}{
		{"endless body", false, endless(okay+"\r\n", "<p>more</p>")},
		{"endless chunks", false, endless(chunked, "5\r\nhello\r\n")},
		{"endless tiny chunks", false, endless(chunked, "1\r\nx\r\n")},
		{"endless chunk extensions", false, endless(chunked+"5;", "a=b;")},
		{"a chunk extension in each chunk", false,
			endless(chunked, "1;"+many(4000, "x")+"\r\nx\r\n")},
		{"endless trailers", false, endless(chunked+"0\r\n", "A: b\r\n")},
		{"a chunk too large to count", false, says(chunked + "FFFFFFFFFFFFFFFFFFFF\r\n")},
		{"a chunk of less than nothing", false, says(chunked + "-5\r\nhello\r\n0\r\n\r\n")},
		{"a chunk that ends early", false, says(chunked + "ff\r\nhello")},
		{"endless gzip", false,
			endless(okay+"Content-Encoding: gzip\r\n\r\n\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x00",
				"\x00\x05\x00\xfa\xffhello")},
		{"twice compressed", false, says(okay + "Content-Encoding: gzip, gzip\r\n\r\nx")},
		{"not compressed at all", false, says(okay + "Content-Encoding: gzip\r\n\r\n<p>plain")},
		{"drips a status line", false, drips("", "HTTP/1.1 200 OK and so on ")},
		{"drips a header", false, drips(okay, "X-A: b\r\n")},
		{"drips a body", false, drips(okay+"\r\n", "<p>slow</p>")},
		{"drips a length", false, drips(okay+"Content-Length: 100000\r\n\r\n", "x")},
		{"endless header", false, endless(okay, "X-Field: value\r\n")},
		{"endless field", false, endless(okay+"X-Field: ", "x")},
		{"endless status line", false, endless("HTTP/1.1 200 ", "OK")},
		{"giant cookies", false,
			says(okay + many(200, "Set-Cookie: a="+many(4000, "x")+"\r\n") + "\r\n")},
		{"endless interim answers", false, endless("", "HTTP/1.1 100 Continue\r\n\r\n")},
		{"endless early hints", false, endless("", "HTTP/1.1 103 Early Hints\r\nLink: </x>; "+
			"rel=preload\r\n\r\n")},
		{"another protocol", false, says("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n")},
		{"leads to itself", false, says("HTTP/1.1 302 Found\r\nLocation: " +
			"/\r\nContent-Length: 0\r\n\r\n")},
		{"leads ever on", false, func(c net.Conn) {
			says(fmt.Sprintf("HTTP/1.1 302 Found\r\nLocation: /%d\r\nContent-Length: 0\r\n\r\n",
				time.Now().UnixNano()))(c)
		}},
		{"leads far away", false,
			says("HTTP/1.1 302 Found\r\nLocation: /" + many(9000, "x") +
				"\r\nContent-Length: 0\r\n\r\n")},
		{"leads nowhere", false, says("HTTP/1.1 302 Found\r\nLocation: " +
			"http://[::1\r\nContent-Length: 0\r\n\r\n")},
		{"leads on with an endless body", false,
			endless("HTTP/1.1 302 Found\r\nLocation: /x\r\n\r\n", "x")},
		{"a length that is too long", false, says(okay + "Content-Length: 5000\r\n\r\n<p>short")},
		{"a length that is too short", false,
			says(okay + "Content-Length: 3\r\n\r\n<p>long" + many(10000, "x"))},
		{"a length that no memory has", false,
			hangs(okay + "Content-Length: 9223372036854775807\r\n\r\nx")},
		{"a length below nothing", false, says(okay + "Content-Length: -5\r\n\r\nhello")},
		{"two lengths", false, says(okay + "Content-Length: 5\r\nContent-Length: 50\r\n\r\nhello")},
		{"a length and chunks", false, says(okay + "Content-Length: 5\r\nTransfer-Encoding: " +
			"chunked\r\n\r\n0\r\n\r\nHTTP/1.1 200 OK\r\n\r\n")},
		{"half closed", false, func(c net.Conn) {
			request(c)
			_, _ = io.WriteString(c, okay+"Content-Length: 100\r\n\r\nhalf")
			_ = c.(*net.TCPConn).CloseWrite()
			_, _ = io.Copy(io.Discard, c)
		}},
		{"silent", false, hangs("")},
		{"silent after the header", false, hangs(okay + "Content-Length: 100\r\n\r\n")},
		{"silent in the middle", false, hangs(okay + "Content-Length: 100\r\n\r\n<p>")},
		{"closes at once", false, func(net.Conn) {}},
		{"closes after the request", false, request},
		{"resets", false, func(c net.Conn) { request(c); _ = c.(*net.TCPConn).SetLinger(0) }},
		{"never reads", false, func(c net.Conn) { waitRead(c, 0); waitRead(c, 2*time.Second) }},
		{"HTTP 0.9", false, says("<p>hello</p>")},
		{"HTTP 2", false,
			says("\x00\x00\x12\x04\x00\x00\x00\x00\x00\x00\x03\x00\x00\x00\x80\x00\x04\x00\x01\x00\x00\x00\x05\x00\xff\xff\xff")},
		{"HTTP 9", false, says("HTTP/9.9 200 OK\r\n\r\nx")},
		{"SSH", false, says("SSH-2.0-OpenSSH_9.2\r\n")},
		{"no status", false, says("HTTP/1.1 \r\n\r\n")},
		{"a status of many digits", false, says("HTTP/1.1 99999999999999999999 OK\r\n\r\n")},
		{"nothing, with a body", false,
			says("HTTP/1.1 204 No Content\r\nContent-Length: 100\r\n\r\n" + many(100, "x"))},
		{"NUL in the header", false, says("HTTP/1.1 200 OK\r\nX\x00: y\x00\r\nContent-Type: " +
			"\x00\r\n\r\nx")},
		{"plain text where TLS is", true, says(okay + "\r\nhello")},
		{"silent where TLS is", true, hangs("")},
		{"endless noise where TLS is", true, endless("", "\x16\x03\x03\x40\x00"+many(16384, "x"))},
		{"a certificate that nobody signed", true,
			overTLS(&tls.Config{Certificates: []tls.Certificate{good}},
				says(okay+"Content-Length: 4\r\n\r\n<p>x"))},
		{"a certificate that has expired", true,
			overTLS(&tls.Config{Certificates: []tls.Certificate{expired}},
				says(okay+"Content-Length: 4\r\n\r\n<p>x"))},
		{"TLS of long ago", true,
			overTLS(&tls.Config{Certificates: []tls.Certificate{good}, MinVersion: tls.VersionTLS10,
				MaxVersion: tls.VersionTLS10}, says(okay+"Content-Length: 4\r\n\r\n<p>x"))},
		{"odd UTF-16", false, says("HTTP/1.1 200 OK\r\nContent-Type: text/html; " +
			"charset=utf-16\r\nContent-Length: 7\r\n\r\n<\x00p\x00>\x00x")},
		{"bytes of no charset", false, says("HTTP/1.1 200 OK\r\nContent-Type: text/html; " +
			"charset=utf-8\r\nContent-Length: 6\r\n\r\n<p>\xff\xfe\x80")},
		{"a charset that does not exist", false, says("HTTP/1.1 200 OK\r\nContent-Type: " +
			"text/html; charset=klingon\r\nContent-Length: 4\r\n\r\n<p>\xe9")},
		{"escapes of ISO-2022-JP", false, says("HTTP/1.1 200 OK\r\nContent-Type: text/html; " +
			"charset=iso-2022-jp\r\nContent-Length: 3000000\r\n\r\n" + many(1_000_000, "\x1b$B"))},
		{"a charset of many bytes", false, says("HTTP/1.1 200 OK\r\nContent-Type: text/html; " +
			"charset=gb18030\r\nContent-Length: 4000000\r\n\r\n" + many(1_000_000,
			"\x81\x30\x81\x30"))},
	} {
		all = append(all, Origin{Name: o.name, TLS: o.tls, Serve: o.serve,
			Prepare: func() {}, Forget: func() {}})
	}
	all = append(all, bombs()...)
	for _, p := range Pages() {
		all = append(all, sending(p.Name, p.Body, func(c net.Conn, text string) {
			_, _ = fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Type: "+
				"%s\r\nContent-Length: %d\r\n\r\n", p.ContentType, len(text))
			_, _ = io.WriteString(c, text)
		}))
	}
	return all, nil
}
