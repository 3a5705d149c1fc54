package measure

import (
	"errors"
	"strings"
)

// Cluster measures the loop on a local cluster with real services.
type Cluster struct {
	Pages         int      `help:"Pages of the measured run." default:"40000"`
	Fetchers      int      `help:"Number of fetchers. Each other role has one node." default:"1"`
	KafkaBrokers  []string `help:"Kafka brokers." env:"KAFKA_BROKERS" placeholder:"HOST:PORT"`
	RedisAddr     string   `help:"Redis address." env:"REDIS_ADDR" placeholder:"HOST:PORT" secret:"url"`
	ClickhouseURL string   `help:"ClickHouse: http://HOST:PORT/." env:"CLICKHOUSE_URL" placeholder:"URL" secret:"url"`
	ServicePIDs   string   `name:"service-pids" help:"Directory with one file per service on this machine that has its process id. These processes are measured, too." placeholder:"DIR" type:"path"`
}

// Help returns the help text.
func (*Cluster) Help() string {
	return `Nodes with one role each run as processes on the loopback. They use the Kafka, Redis and ClickHouse that flags or the
environment name (KAFKA_BROKERS, REDIS_ADDR, CLICKHOUSE_URL). The report shows what a page costs in each process. The
benchmark creates its own topics and database and removes them.

Example: shoal bench cluster --fetchers 2 --kafka-brokers 127.0.0.1:9092 --redis-addr 127.0.0.1:6379 --clickhouse-url http://127.0.0.1:8123/`
}

// check reports missing settings.
func (m *Cluster) check() error {
	if err := positive(map[string]int{"pages": m.Pages, "fetchers": m.Fetchers}); err != nil {
		return err
	}
	var missing []error
	for _, service := range []struct {
		given bool
		names string
	}{{strings.Join(m.KafkaBrokers, "") != "", "--kafka-brokers or KAFKA_BROKERS"},
		{m.RedisAddr != "", "--redis-addr or REDIS_ADDR"},
		{m.ClickhouseURL != "", "--clickhouse-url or CLICKHOUSE_URL"}} {
		if !service.given {
			missing = append(missing, errors.New("a cluster needs "+service.names))
		}
	}
	return errors.Join(missing...)
}
