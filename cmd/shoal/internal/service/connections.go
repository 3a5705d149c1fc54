package service

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"strconv"
	"strings"

	"github.com/alecthomas/kong"

	"shoal.dev/shoal/pkg/cache"
	"shoal.dev/shoal/pkg/rowstore/clickhouse"
	"shoal.dev/shoal/pkg/stream/kafka"
)

// Connections say where the services are and how to sign in there. A service without an address is
// embedded in the process. A tag secret marks values, or passwords in URLs, that must not be on the
// command line, which everybody on the machine can read.
type Connections struct {
	KafkaBrokers      []string `group:"services" help:"Kafka brokers, instead of a log in this process." placeholder:"HOST:PORT"`
	KafkaTLS          bool     `group:"services" help:"Use TLS to the brokers, with the system's certificate authorities unless --kafka-ca-file is set."`
	KafkaCAFile       string   `group:"services" help:"Certificate authorities for the brokers (PEM)." type:"path" placeholder:"FILE"`
	KafkaCertFile     string   `group:"services" help:"Client certificate for the brokers (PEM)." type:"path" placeholder:"FILE"`
	KafkaKeyFile      string   `group:"services" help:"Private key of --kafka-cert-file (PEM)." type:"path" placeholder:"FILE"`
	KafkaSASL         string   `name:"kafka-sasl" group:"services" help:"SASL mechanism for the brokers: PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512." placeholder:"MECHANISM"`
	KafkaUser         string   `group:"services" help:"User for --kafka-sasl." placeholder:"USER"`
	KafkaPassword     string   `group:"services" help:"Password of --kafka-user; refused on the command line." placeholder:"PASSWORD" secret:"value"`
	KafkaPasswordFile string   `group:"services" help:"File with the password of --kafka-user." type:"path" placeholder:"FILE"`

	ClickhouseURL          string `group:"services" help:"ClickHouse (HTTP), instead of SQLite in the data directory: http://HOST:PORT/DATABASE or https://…." placeholder:"URL" secret:"url"`
	ClickhouseUser         string `group:"services" help:"ClickHouse user, instead of the one in the URL." placeholder:"USER"`
	ClickhousePassword     string `group:"services" help:"Password of --clickhouse-user; refused on the command line." placeholder:"PASSWORD" secret:"value"`
	ClickhousePasswordFile string `group:"services" help:"File with the password of --clickhouse-user." type:"path" placeholder:"FILE"`
	ClickhouseCAFile       string `group:"services" help:"Certificate authorities for ClickHouse (PEM)." type:"path" placeholder:"FILE"`

	RedisAddr         string `group:"services" help:"Redis, instead of limits and caches in each process. redis://HOST:PORT/DATABASE, or rediss:// for TLS, works too." placeholder:"HOST:PORT" secret:"url"`
	RedisUser         string `group:"services" help:"Redis user, instead of the one in the URL. With neither, the default user." placeholder:"USER"`
	RedisPassword     string `group:"services" help:"Redis password; refused on the command line." placeholder:"PASSWORD" secret:"value"`
	RedisPasswordFile string `group:"services" help:"File with the Redis password." type:"path" placeholder:"FILE"`
	RedisCAFile       string `group:"services" help:"Certificate authorities for Redis (PEM)." type:"path" placeholder:"FILE"`

	Blobs             string `group:"services" help:"Blob store, which also holds backups: s3://BUCKET?endpoint=URL&region=NAME, or dir:PATH for a single process. By default a single process uses its data directory, and a cluster has no blob store." placeholder:"PLACE" secret:"url"`
	BlobsUser         string `group:"services" help:"Access key at the S3 store." placeholder:"KEY"`
	BlobsPassword     string `group:"services" help:"Secret key of --blobs-user; refused on the command line." placeholder:"SECRET" secret:"value"`
	BlobsPasswordFile string `group:"services" help:"File with the secret key of --blobs-user." type:"path" placeholder:"FILE"`
	BlobsCAFile       string `group:"services" help:"Certificate authorities for the S3 store (PEM)." type:"path" placeholder:"FILE"`
}

// maxSecretFile bounds the file of a password or a CA, in bytes.
const maxSecretFile = 1 << 20

// Check reports which flag cannot work before anything is connected. It reads the files.
func (c *Connections) Check() error {
	https, rediss := strings.HasPrefix(c.ClickhouseURL, "https://"),
		strings.HasPrefix(c.RedisAddr, "rediss://")
	for _, rule := range []struct {
		flag  string
		given bool
		needs string
		there bool
	}{
		{"--kafka-tls", c.KafkaTLS, "--kafka-brokers", len(c.KafkaBrokers) > 0},
		{"--kafka-ca-file", c.KafkaCAFile != "", "--kafka-tls", c.KafkaTLS},
		{"--kafka-cert-file", c.KafkaCertFile != "", "--kafka-tls", c.KafkaTLS},
		{"--kafka-cert-file", c.KafkaCertFile != "", "--kafka-key-file", c.KafkaKeyFile != ""},
		{"--kafka-key-file", c.KafkaKeyFile != "", "--kafka-cert-file", c.KafkaCertFile != ""},
		{"--kafka-sasl", c.KafkaSASL != "", "--kafka-brokers", len(c.KafkaBrokers) > 0},
		{"--kafka-sasl", c.KafkaSASL != "", "--kafka-user", c.KafkaUser != ""},
		{"--kafka-sasl", c.KafkaSASL != "", "SHOAL_KAFKA_PASSWORD or --kafka-password-file",
			c.KafkaPassword+c.KafkaPasswordFile != ""},
		{"--kafka-user", c.KafkaUser != "", "--kafka-sasl", c.KafkaSASL != ""},
		{"--kafka-password", c.KafkaPassword+c.KafkaPasswordFile != "", "--kafka-sasl",
			c.KafkaSASL != ""},
		{"--clickhouse-user", c.ClickhouseUser != "", "--clickhouse-url", c.ClickhouseURL != ""},
		{"--clickhouse-password", c.ClickhousePassword+c.ClickhousePasswordFile != "",
			"--clickhouse-user",
			c.ClickhouseUser != ""},
		{"--clickhouse-ca-file", c.ClickhouseCAFile != "", "an https:// in --clickhouse-url",
			https},
		{"--redis-user", c.RedisUser != "", "SHOAL_REDIS_PASSWORD or --redis-password-file",
			c.RedisPassword+c.RedisPasswordFile != ""},
		{"--redis-password", c.RedisPassword+c.RedisPasswordFile != "", "--redis-addr",
			c.RedisAddr != ""},
		{"--redis-ca-file", c.RedisCAFile != "", "a rediss:// in --redis-addr", rediss},
		{"--blobs-user", c.BlobsUser != "", "an s3:// in --blobs",
			strings.HasPrefix(c.Blobs, inS3)},
		{"--blobs-user", c.BlobsUser != "", "SHOAL_BLOBS_PASSWORD or --blobs-password-file",
			c.BlobsPassword+c.BlobsPasswordFile != ""},
		{"--blobs-password", c.BlobsPassword+c.BlobsPasswordFile != "", "--blobs-user",
			c.BlobsUser != ""},
		{"--blobs-ca-file", c.BlobsCAFile != "", "an s3:// in --blobs",
			strings.HasPrefix(c.Blobs, inS3)},
	} {
		if rule.given && !rule.there {
			return fmt.Errorf("%s: needs %s", rule.flag, rule.needs)
		}
	}
	_, kafkaError := c.Kafka()
	_, rowsError := c.clickhouse()
	_, redisError := c.redis()
	_, blobsError := c.s3()
	return cmp.Or(kafkaError, rowsError, redisError, blobsError)
}

// Kafka returns how to reach the brokers.
func (c *Connections) Kafka() (config kafka.Config, err error) {
	config.Brokers = c.KafkaBrokers
	if c.KafkaTLS {
		config.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
		if config.TLS.RootCAs, err = authorities("--kafka-ca-file", c.KafkaCAFile); err != nil {
			return config, err
		}
	}
	if c.KafkaCertFile != "" {
		certificate, err := tls.LoadX509KeyPair(c.KafkaCertFile, c.KafkaKeyFile)
		if err != nil {
			return config, fmt.Errorf("--kafka-cert-file, --kafka-key-file: %w", err)
		}
		config.TLS.Certificates = []tls.Certificate{certificate}
	}
	if c.KafkaSASL == "" {
		return config, nil
	}
	password, err := secret("--kafka-password", c.KafkaPassword, c.KafkaPasswordFile)
	if err != nil {
		return config, err
	}
	config.SASL = &kafka.SASL{Mechanism: c.KafkaSASL, User: c.KafkaUser, Password: password}
	if err := config.SASL.Check(); err != nil {
		return config, fmt.Errorf("--kafka-sasl: %w", err)
	}
	return config, nil
}

// clickhouse returns how to reach the row store.
func (c *Connections) clickhouse() (config clickhouse.Config, err error) {
	if c.ClickhouseURL == "" {
		return config, nil
	}
	config.URL, config.Username = c.ClickhouseURL, c.ClickhouseUser
	config.Password, err = secret("--clickhouse-password", c.ClickhousePassword,
		c.ClickhousePasswordFile)
	if err != nil {
		return config, err
	}
	if config.RootCAs, err = authorities("--clickhouse-ca-file", c.ClickhouseCAFile); err != nil {
		return config, err
	}
	if err := config.Check(); err != nil {
		return config, fmt.Errorf("--clickhouse-url: %w", err)
	}
	return config, nil
}

// redis returns how to reach the cache.
func (c *Connections) redis() (config cache.Config, err error) {
	if c.RedisAddr == "" {
		return config, nil
	}
	config.Addr, config.Username = c.RedisAddr, c.RedisUser
	if config.Password, err = secret("--redis-password", c.RedisPassword,
		c.RedisPasswordFile); err != nil {
		return config, err
	}
	if config.RootCAs, err = authorities("--redis-ca-file", c.RedisCAFile); err != nil {
		return config, err
	}
	if err := config.Check(); err != nil {
		return config, fmt.Errorf("--redis-addr: %w", err)
	}
	return config, nil
}

// secret returns a given password, or the content of a file without its line end.
func secret(flag, value, file string) (string, error) {
	switch {
	case file == "":
		return value, nil
	case value != "":
		return "", fmt.Errorf("%s-file: the password is given elsewhere, too (%s)", flag,
			variable(flag))
	}
	content, err := readFile(flag+"-file", file)
	if err != nil {
		return "", err
	}
	password := strings.TrimSuffix(strings.TrimSuffix(string(content), "\n"), "\r")
	if password == "" {
		return "", fmt.Errorf("%s-file: %s is empty", flag, file)
	}
	return password, nil
}

// authorities returns the CAs of a file; nil, the system's, without one.
func authorities(flag, file string) (*x509.CertPool, error) {
	if file == "" {
		return nil, nil
	}
	content, err := readFile(flag, file)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(content) {
		return nil, fmt.Errorf("%s: %s has no certificate in PEM", flag, file)
	}
	return pool, nil
}

func readFile(flag, name string) ([]byte, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", flag, err)
	}
	defer func() { _ = file.Close() }() // read-only
	content, err := io.ReadAll(io.LimitReader(file, maxSecretFile+1))
	if err == nil && len(content) > maxSecretFile {
		err = errors.New(name + " is too large")
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", flag, err)
	}
	return content, nil
}

// variable returns a flag's environment variable.
func variable(flag string) string {
	return "SHOAL_" + strings.ToUpper(strings.ReplaceAll(strings.TrimPrefix(flag, "--"), "-", "_"))
}

// Environment returns variables that give another process the same settings and passwords.
func (c *ServicesConfig) Environment() []string {
	var variables []string
	for flag, value := range map[string]string{
		"kafka-brokers": strings.Join(c.KafkaBrokers, ","), "kafka-prefix": c.KafkaPrefix,
		"kafka-replicas": strconv.Itoa(c.KafkaReplicas),
		"kafka-tls":      strconv.FormatBool(c.KafkaTLS),
		"kafka-ca-file":  c.KafkaCAFile, "kafka-cert-file": c.KafkaCertFile,
		"kafka-key-file": c.KafkaKeyFile,
		"kafka-sasl":     c.KafkaSASL, "kafka-user": c.KafkaUser,
		"kafka-password": c.KafkaPassword, "kafka-password-file": c.KafkaPasswordFile,
		"clickhouse-url": c.ClickhouseURL, "clickhouse-user": c.ClickhouseUser,
		"clickhouse-ca-file":       c.ClickhouseCAFile,
		"clickhouse-password":      c.ClickhousePassword,
		"clickhouse-password-file": c.ClickhousePasswordFile,
		"redis-addr":               c.RedisAddr, "redis-prefix": c.RedisPrefix,
		"redis-user":     c.RedisUser,
		"redis-ca-file":  c.RedisCAFile,
		"redis-password": c.RedisPassword, "redis-password-file": c.RedisPasswordFile,
		"blobs": c.Blobs, "blobs-user": c.BlobsUser, "blobs-ca-file": c.BlobsCAFile,
		"blobs-password": c.BlobsPassword, "blobs-password-file": c.BlobsPasswordFile,
	} {
		if value != "" {
			variables = append(variables, variable(flag)+"="+value)
		}
	}
	return variables
}

// CheckSecrets refuses passwords on the command line. At this point ctx holds only flags, before
// the environment and the config file are read.
func CheckSecrets(ctx *kong.Context) error {
	for _, path := range ctx.Path {
		if path.Flag == nil || !path.Flag.Tag.Has("secret") {
			continue
		}
		value, _ := ctx.FlagValue(path.Flag).(string)
		if path.Flag.Tag.Get("secret") == "value" || holdsPassword(value) {
			return fmt.Errorf("--%s: a password on the command line is there for everybody to "+
				"see; use %s, the --config file "+
				"or --%s", path.Flag.Name, variable(path.Flag.Name), passwordFile(path.Flag.Name))
		}
	}
	return nil
}

// passwordFile is the file flag that replaces a flag with a visible password.
func passwordFile(flag string) string {
	service, _, _ := strings.Cut(flag, "-")
	return service + "-password-file"
}

// holdsPassword says whether a URL holds a password. An unparsable URL may.
func holdsPassword(address string) bool {
	if !strings.Contains(address, "://") {
		return false
	}
	parsed, err := url.Parse(address)
	if err != nil {
		return strings.Contains(address, "@")
	}
	_, password := parsed.User.Password()
	return password || parsed.Query().Has("password")
}
