//go:build linux

package cluster

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

func TestMetrics(t *testing.T) {
	metrics, err := parseMetrics(strings.NewReader(`# HELP shoal_x Of something.
# TYPE shoal_x gauge
shoal_x 3
shoal_y{node="a b",role="x} y"} 1.5e+06
shoal_z_bucket{le="+Inf"} 7
`))
	want := map[string]float64{"shoal_x": 3, `shoal_y{node="a b",role="x} y"}`: 1.5e6,
		`shoal_z_bucket{le="+Inf"}`: 7}
	if err != nil || !maps.Equal(metrics, want) {
		t.Errorf("%v, %v", metrics, err)
	}
}

func TestServicesFromTheEnvironment(t *testing.T) {
	env := map[string]string{"KAFKA_BROKERS": "127.0.0.1:1,127.0.0.1:2",
		"REDIS_ADDR":     "127.0.0.1:3",
		"CLICKHOUSE_URL": "http://127.0.0.1:4/default"}
	get := func(name string) string { return env[name] }
	services, err := FromEnv(get)
	if err != nil {
		t.Fatal(err)
	}
	for service, want := range map[string]int{Kafka: 2, Redis: 1, ClickHouse: 1} {
		if places, err := services.addresses(service); err != nil || len(places) != want {
			t.Errorf("%s is at %v, %v", service, places, err)
		}
	}
	if got := services.processes(Kafka); !slices.Equal(got, []string{"kafka-1", "kafka-2"}) {
		t.Errorf("Kafka is %v", got)
	}
	if err := services.Kill(t.Context(), Kafka); err == nil ||
		!strings.Contains(err.Error(), "SHOAL_SERVICES") {
		t.Errorf("services without scripts are killed: %v", err)
	}
	env["REDIS_ADDR"] = "redis.example:6379"
	if services, err = FromEnv(get); err != nil {
		t.Fatal(err)
	}
	if _, err := services.addresses(Redis); err == nil {
		t.Error("a service elsewhere can be cut off")
	}
	delete(env, "KAFKA_BROKERS")
	delete(env, "CLICKHOUSE_URL")
	if _, err := FromEnv(get); err == nil || !strings.Contains(err.Error(), "KAFKA_BROKERS") ||
		!strings.Contains(err.Error(), "CLICKHOUSE_URL") {
		t.Errorf("what is missing is not named: %v", err)
	}
}

func TestLayout(t *testing.T) {
	specs := Layout(3, 1, 0, 0, 2)
	var names []string
	for _, spec := range specs {
		names = append(names, spec.Name+"="+strings.Join(spec.Roles, ","))
	}
	want := []string{"cp1=controlplane", "cp2=controlplane", "cp3=controlplane", "fetch1=fetcher",
		"api1=apiserver",
		"api2=apiserver"}
	if !slices.Equal(names, want) {
		t.Errorf("%v", names)
	}
}
