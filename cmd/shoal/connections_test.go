package main

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"io/fs"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kfake"

	"shoal.dev/shoal/cmd/shoal/internal/service"
	"shoal.dev/shoal/cmd/shoal/internal/terminal"
	"shoal.dev/shoal/controlplane/identity"
)

// hidden is the password that must not be shown.
const hidden = "Kum quat/1"

// selfSigned is a self-signed certificate for 127.0.0.1, in files and in memory.
type selfSigned struct {
	certificate tls.Certificate
	cert, key   string // files
}

func newSelfSigned(t *testing.T) *selfSigned {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotAfter:    time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	a := &selfSigned{cert: filepath.Join(t.TempDir(), "ca.crt"),
		key:         filepath.Join(t.TempDir(), "tls.key"),
		certificate: tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}}
	for file, block := range map[string]*pem.Block{a.cert: {Type: "CERTIFICATE", Bytes: der},
		a.key: {Type: "PRIVATE KEY", Bytes: private}} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return a
}

func TestConnectionsThatCannotWork(t *testing.T) {
	a := newSelfSigned(t)
	kafka := []string{"kafka-brokers = k:1", "kafka-tls = true"}
	sasl := append(kafka, "kafka-sasl = PLAIN", "kafka-user = u")
	rows, redis := "clickhouse-url = https://c:8443/d", "redis-addr = rediss://r:6380"
	for _, c := range []struct {
		lines []string
		says  string
	}{
		{[]string{"kafka-tls = true"}, "--kafka-tls: needs --kafka-brokers"},
		{[]string{kafka[0], "kafka-ca-file = x"}, "--kafka-ca-file: needs --kafka-tls"},
		{append(kafka, "kafka-ca-file = missing.pem"), "--kafka-ca-file: open"},
		{append(kafka, "kafka-ca-file = "+a.key),
			"--kafka-ca-file: " + a.key + " has no certificate"},
		{append(kafka, "kafka-cert-file = "+a.cert), "--kafka-cert-file: needs --kafka-key-file"},
		{append(kafka, "kafka-key-file = "+a.key), "--kafka-key-file: needs --kafka-cert-file"},
		{append(kafka, "kafka-cert-file = "+a.cert, "kafka-key-file = "+a.cert),
			"--kafka-cert-file, --kafka-key-file: "},
		{[]string{"kafka-sasl = PLAIN"}, "--kafka-sasl: needs --kafka-brokers"},
		{append(kafka, "kafka-sasl = PLAIN"), "--kafka-sasl: needs --kafka-user"},
		{sasl, "--kafka-sasl: needs SHOAL_KAFKA_PASSWORD or --kafka-password-file"},
		{append(kafka, "kafka-user = u"), "--kafka-user: needs --kafka-sasl"},
		{append(kafka, "kafka-password = x"), "--kafka-password: needs --kafka-sasl"},
		{append(kafka, "kafka-sasl = NTLM", "kafka-user = u", "kafka-password = x"),
			`--kafka-sasl: the mechanism "NTLM" is none of`},
		{append(sasl, "kafka-password = "+hidden, "kafka-password-file = "+a.key),
			"--kafka-password-file: the password is given elsewhere"},
		{append(sasl, "kafka-password-file = missing"), "--kafka-password-file: open"},
		{append(sasl, "kafka-password-file = /dev/null"),
			"--kafka-password-file: /dev/null is empty"},
		{append(sasl, "kafka-password-file = /dev/zero"),
			"--kafka-password-file: /dev/zero is too large"},
		{[]string{"clickhouse-user = u"}, "--clickhouse-user: needs --clickhouse-url"},
		{[]string{rows, "clickhouse-password = x"},
			"--clickhouse-password: needs --clickhouse-user"},
		{[]string{"clickhouse-url = http://c/d", "clickhouse-ca-file = x"},
			"--clickhouse-ca-file: needs an https:// in"},
		{[]string{rows, "clickhouse-ca-file = missing.pem"}, "--clickhouse-ca-file: open"},
		{[]string{"clickhouse-url = http://u:" + hidden + "@c/d"}, "--clickhouse-url: "},
		{[]string{"redis-addr = r:1", "redis-user = u"},
			"--redis-user: needs SHOAL_REDIS_PASSWORD or"},
		{[]string{"redis-password = x"}, "--redis-password: needs --redis-addr"},
		{[]string{"redis-addr = r:1", "redis-ca-file = x"},
			"--redis-ca-file: needs a rediss:// in"},
		{[]string{redis, "redis-ca-file = missing.pem"}, "--redis-ca-file: open"},
		{[]string{"redis-addr = rediss://u:" + hidden + "@r:1"}, "--redis-addr: "},
		{[]string{"blobs = gs://b"}, "--blobs: want dir:PATH or s3://BUCKET"},
		{[]string{"blobs = s3://"}, "--blobs: no bucket is named"},
		{[]string{"blobs = s3://k:" + hidden + "@b"}, "--blobs: want s3://BUCKET?endpoint="},
		{[]string{"blobs = s3://b?secret=" + hidden}, "--blobs: want no more than endpoint"},
		{[]string{"blobs = s3://b?endpoint=minio:9000"}, "--blobs: endpoint: "},
		{[]string{"blobs = s3://b", "blobs-user = u"}, "--blobs-user: needs SHOAL_BLOBS_PASSWORD"},
		{[]string{"blobs = dir:b", "blobs-user = u"}, "--blobs-user: needs an s3:// in --blobs"},
		{[]string{"blobs = s3://b", "blobs-password = x"}, "--blobs-password: needs --blobs-user"},
		{[]string{"blobs = s3://b", "blobs-ca-file = missing.pem"}, "--blobs-ca-file: open"},
		{[]string{"blobs-ca-file = x"}, "--blobs-ca-file: needs an s3:// in --blobs"},
		{[]string{"backup-every = 5ms"}, "--backup-every: no less than a second"},
		{[]string{"backup-every = -1h"}, "--backup-every: want a time"},
		{[]string{"backup-keep = 0"}, "--backup-keep: 1 to 1000"},
		{[]string{"kafka-password " + hidden}, "shoal.conf:1: want 'key = value'"},
	} {
		b := newShell(t)
		b.run = func(context.Context, service.Config) error { return errors.New("it served") }
		file := b.write("shoal.conf", strings.Join(c.lines, "\n"))
		got := b.shoal("serve", "--config", file)
		got.want(t, terminal.ExitUsage, c.says)
		if strings.Contains(got.err+got.out, "quat") {
			t.Errorf("it tells the password: %s", got.err)
		}
	}
}

// TestPasswordsAreNotOnTheCommandLine: ps shows no passwords.
func TestPasswordsAreNotOnTheCommandLine(t *testing.T) {
	for _, c := range [][]string{
		{"serve", "--kafka-password", hidden}, {"serve", "--clickhouse-password=" + hidden},
		{"serve", "--redis-password", hidden}, {"serve", "--blobs-password", hidden},
		{"serve", "--blobs", "s3://k:" + hidden + "@b"},
		{"serve", "--clickhouse-url", "http://u:" + url.QueryEscape(hidden) + "@c/d"},
		{"serve", "--clickhouse-url", "http://u:" + hidden + "@c/d"},
		{"serve", "--clickhouse-url", "http://c/d?username=u&password=x"},
		{"serve", "--redis-addr", "redis://:x@r:1"},
		{"cluster", "demo", "--redis-addr", "redis://:x@r:1"},
	} {
		b := newShell(t)
		b.run = func(context.Context, service.Config) error { return errors.New("it served") }
		got := b.shoal(c...)
		got.want(t, terminal.ExitUsage, "-password-file", "for everybody to see")
		if strings.Contains(got.err+got.out, "quat") {
			t.Errorf("it tells the password: %s", got.err)
		}
	}
}

// TestConnectionsReachOtherProcesses: processes that a demo starts get every setting, and nothing
// secret by flags.
func TestConnectionsReachOtherProcesses(t *testing.T) {
	a := newSelfSigned(t)
	password := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(password, []byte(hidden+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	given := service.ServicesConfig{KafkaPrefix: "p.", KafkaReplicas: 2, RedisPrefix: "r:",
		Connections: service.Connections{
			KafkaBrokers: []string{"k1:1", "k2:2"}, KafkaTLS: true, KafkaCAFile: a.cert,
			KafkaCertFile: a.cert, KafkaKeyFile: a.key,
			KafkaSASL: "scram-sha-512", KafkaUser: "u", KafkaPassword: hidden,
			KafkaPasswordFile: password,
			ClickhouseURL:     "https://c:1/d", ClickhouseUser: "u", ClickhousePassword: hidden,
			ClickhousePasswordFile: password,
			ClickhouseCAFile:       a.cert, RedisAddr: "rediss://r:1", RedisUser: "u",
			RedisPassword:     hidden,
			RedisPasswordFile: password,
			RedisCAFile:       a.cert,
			Blobs:             "s3://b?endpoint=https://s:1&region=r", BlobsUser: "u",
			BlobsPassword: hidden, BlobsPasswordFile: password, BlobsCAFile: a.cert}}
	for _, field := range reflect.VisibleFields(reflect.TypeFor[service.ServicesConfig]()) {
		if reflect.ValueOf(given).FieldByIndex(field.Index).IsZero() {
			t.Fatalf("the test gives no %s", field.Name)
		}
	}
	for _, files := range []bool{false, true} {
		want := given // a password is given one way or the other
		if files {
			want.KafkaPassword, want.ClickhousePassword, want.RedisPassword = "", "", ""
			want.BlobsPassword = ""
		} else {
			want.KafkaPasswordFile, want.ClickhousePasswordFile, want.RedisPasswordFile = "", "", ""
			want.BlobsPasswordFile = ""
		}
		t.Run("files "+strconv.FormatBool(files), func(t *testing.T) {
			for _, variable := range want.Environment() {
				name, value, _ := strings.Cut(variable, "=")
				t.Setenv(name, value)
			}
			b := newShell(t)
			var got service.Config
			b.run = func(_ context.Context,
				config service.Config) error {
				got = config
				return nil
			}
			b.shoal("serve").want(t, terminal.ExitOK)
			if diff := cmp.Diff(want, got.Services); diff != "" {
				t.Error(diff)
			}
			if kafka, err := got.Services.Kafka(); err != nil || kafka.SASL.Password != hidden ||
				len(kafka.TLS.Certificates) != 1 {
				t.Errorf("%+v, %v", kafka, err)
			}
			if strings.Contains(strings.Join(got.Args(), " "), "quat") {
				t.Errorf("flags %q", got.Args())
			}
		})
	}
}

// TestSecuredServices runs a process on Kafka and Redis with TLS and passwords, then with wrong
// passwords. It looks for the passwords in everything that the process prints and stores.
func TestSecuredServices(t *testing.T) {
	a := newSelfSigned(t)
	server := &tls.Config{Certificates: []tls.Certificate{a.certificate},
		MinVersion: tls.VersionTLS12}
	brokers, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.TLS(server), kfake.EnableSASL(),
		kfake.Superuser("SCRAM-SHA-256", "u", hidden))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(brokers.Close)
	redis, err := miniredis.RunTLS(server)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(redis.Close)
	redis.RequireUserAuth("u", hidden)
	rows := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter,
		_ *http.Request) {
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, "Code: 516. DB::Exception: u: Authentication failed")
	}))
	rows.TLS = server
	rows.StartTLS()
	t.Cleanup(rows.Close)

	good := service.Connections{KafkaBrokers: brokers.ListenAddrs(), KafkaTLS: true,
		KafkaCAFile: a.cert, KafkaSASL: "SCRAM-SHA-256",
		KafkaUser: "u", KafkaPassword: hidden,
		RedisAddr: "rediss://" + redis.Addr(), RedisUser: "u", RedisPassword: hidden,
		RedisCAFile: a.cert}
	noRedis, noRows := good, good
	noRedis.RedisPassword = hidden + "?"
	noRows.ClickhouseURL, noRows.ClickhouseCAFile = rows.URL+"/d", a.cert
	noRows.ClickhouseUser, noRows.ClickhousePassword = "u", hidden
	for name, c := range map[string]struct {
		connections service.Connections
		says        string
	}{
		"good":       {good, ""},
		"redis":      {noRedis, "--redis-addr: cache: Redis refuses, or is not the one: WRONGPASS"},
		"clickhouse": {noRows, "--clickhouse-url: row store: "},
	} {
		t.Run(name, func(t *testing.T) {
			if err := c.connections.Check(); err != nil {
				t.Fatal(err)
			}
			dir := t.TempDir()
			told, err := serveOnce(t,
				service.Config{Data: dir,
					Services: service.ServicesConfig{Connections: c.connections}})
			if (err == nil) != (c.says == "") || err != nil &&
				!strings.HasPrefix(err.Error(), c.says) {
				t.Errorf("error %v, want %q", err, c.says)
			}
			if err != nil {
				told += err.Error()
			}
			if strings.Contains(told, "quat/1") {
				t.Errorf("the password is told:\n%s", told)
			}
			if name == "good" && !strings.Contains(told, "shoal_stream_publish_seconds") {
				t.Error("no metrics were seen")
			}
			keepsNot(t, dir, "quat/1")
		})
	}
}

// TestWrongAddressesAreTold: a node that waits for a broker, or for the members that it joins, says
// so on the terminal.
func TestWrongAddressesAreTold(t *testing.T) {
	brokers, err := kfake.NewCluster(kfake.NumBrokers(1))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(brokers.Close)
	free := func() string {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = l.Close() }()
		return l.Addr().String()
	}
	for says, flags := range map[string][]string{
		"kafka: no success with the brokers yet, brokers [127.0.0.1:1]": {
			"--kafka-brokers", "127.0.0.1:1"},
		"gossip: nobody answers at the addresses to join": {"--kafka-brokers",
			brokers.ListenAddrs()[0], "--identity", "f1.pem", "--join", "127.0.0.1:1",
			"--clickhouse-url", "http://127.0.0.1:1/d", "--cluster-listen", free(),
			"--gossip-listen", free()},
	} {
		b := newShell(t)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		b.said = func(told string) {
			if strings.Contains(told, says) {
				cancel()
			}
		}
		var writing sync.Mutex
		b.run = func(ctx context.Context, config service.Config) error {
			notice := config.Notice
			config.Listen, config.Notice = "127.0.0.1:0", func(text string) {
				writing.Lock()
				defer writing.Unlock()
				notice(text)
			}
			return service.Run(ctx, config)
		}
		if at := slices.Index(flags, "--identity"); at >= 0 {
			file := filepath.Join(b.data, flags[at+1])
			b.shoal("cluster", "init", "--data", b.data, "--name", "prod")
			b.shoal("cluster", "cert", "f1", "--data", b.data, "--roles", "fetcher", "--out", file)
			flags[at+1] = file
		}
		r := b.shoalIn(ctx, append([]string{"serve"}, flags...)...)
		if !errors.Is(ctx.Err(), context.Canceled) {
			t.Errorf("exit code %d, and never told: %s\n%s", r.code, says, r.err)
		}
		cancel()
	}
}

// serveOnce serves until everything is ready, and returns what /metrics reported then.
func serveOnce(t *testing.T, config service.Config) (metrics string, err error) {
	t.Helper()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	config.OpsListen = free.Addr().String()
	if err := free.Close(); err != nil {
		t.Fatal(err)
	}
	config.Listen, config.Roles, config.Cluster.Capacity, config.SelfKey = "127.0.0.1:0",
		identity.Roles(), 1, true
	config.Chromium = service.NoChromium
	config.HostRate, config.HostConnections, config.MaxHostRate, config.MaxHostConnections = 1, 1,
		1, 1
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	ask := func(path string) (int, string) {
		answer, err := http.Get("http://" + config.OpsListen + path)
		if err != nil {
			t.Error(err)
			return 0, ""
		}
		defer func() { _ = answer.Body.Close() }()
		text, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Error(err)
		}
		return answer.StatusCode, string(text)
	}
	config.Ready = func(string) {
		_, metrics = ask("/metrics")
		if code, said := ask("/api/readyz"); code != http.StatusOK {
			t.Errorf("not ready: %d %s", code, said)
		}
		stop()
		if code, said := ask("/api/readyz"); code != http.StatusServiceUnavailable ||
			!strings.Contains(said, "stops") {
			t.Errorf("while it stops: %d %s", code, said)
		}
	}
	asks, asked := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(asked)
		readyWithKey(t, config, asks)
	}()
	defer func() {
		close(asks)
		<-asked
	}()
	err = service.Run(ctx, config)
	return metrics, err
}

// readyWithKey asks whether a starting process is ready, until it is. Then its key is there, which
// whoever waits for readiness reads.
func readyWithKey(t *testing.T, config service.Config, ended <-chan struct{}) {
	for {
		select {
		case <-ended:
			return
		default:
		}
		answer, err := http.Get("http://" + config.OpsListen + "/api/readyz")
		if err != nil {
			continue // it does not listen yet, or any more
		}
		_ = answer.Body.Close()
		if answer.StatusCode != http.StatusOK {
			continue
		}
		if _, err := os.Stat(filepath.Join(config.Data, "api-key")); err != nil {
			t.Errorf("it is ready without its key: %v", err)
		}
		return
	}
}

// keepsNot fails the test if a file in a directory contains a text.
func keepsNot(t *testing.T, dir, text string) {
	t.Helper()
	files := 0
	err := filepath.WalkDir(dir, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		files++
		content, err := os.ReadFile(name)
		if bytes.Contains(content, []byte(text)) {
			t.Errorf("%s holds %q", name, text)
		}
		return err
	})
	if err != nil || files == 0 {
		t.Errorf("%d files, %v", files, err)
	}
}
