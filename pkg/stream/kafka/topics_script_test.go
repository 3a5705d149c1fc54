package kafka_test

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	segmentio "github.com/segmentio/kafka-go"

	"shoal.dev/shoal/pkg/stream"
	"shoal.dev/shoal/pkg/stream/kafka"
)

// TestTopicsByTheScript: deploy/rights/topics creates the same topics as the service, with as many
// replicas and the same settings.
func TestTopicsByTheScript(t *testing.T) {
	text, err := os.ReadFile("../../../deploy/rights/topics")
	if err != nil {
		t.Fatal(err)
	}
	said := func(pattern string) string {
		found := regexp.MustCompile(pattern).FindSubmatch(text)
		if found == nil {
			t.Fatalf("the script has no %s", pattern)
		}
		return string(found[1])
	}
	var names []string
	for _, topic := range stream.Topics() {
		names = append(names, topic.String())
	}
	slices.Sort(names)
	if made := strings.Fields(said(`for topic in (.*); do`)); !slices.Equal(slices.Sorted(
		slices.Values(made)), names) {
		t.Errorf("the script makes %q, want %q", made, names)
	}
	if replicas := said(`--replication-factor (\d+)`); replicas != "3" {
		t.Errorf("the script makes %s replicas", replicas)
	}
	settings := map[string]string{}
	for _, config := range regexp.MustCompile(`--config (\S+)=(\S+)`).FindAllSubmatch(text, -1) {
		settings[string(config[1])] = string(config[2])
	}

	brokers := fakeBrokers(t)
	log, err := kafka.Open(t.Context(), kafka.Config{Brokers: brokers, Partitions: 1, Replicas: 3})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = log.Close() })
	transport := &segmentio.Transport{}
	defer transport.CloseIdleConnections()
	client := &segmentio.Client{Addr: segmentio.TCP(brokers...), Transport: transport}
	for _, name := range names {
		answer, err := client.DescribeConfigs(t.Context(), &segmentio.DescribeConfigsRequest{
			Resources: []segmentio.DescribeConfigRequestResource{{
				ResourceType: segmentio.ResourceTypeTopic,
				ResourceName: kafka.DefaultPrefix + name,
				ConfigNames:  slices.Sorted(maps.Keys(settings))}}})
		if err != nil {
			t.Fatal(err)
		}
		has := map[string]string{}
		for _, entry := range answer.Resources[0].ConfigEntries {
			if _, asked := settings[entry.ConfigName]; asked {
				has[entry.ConfigName] = entry.ConfigValue
			}
		}
		if !maps.Equal(has, settings) {
			t.Errorf("%s has %v, and by the script %v", name, has, settings)
		}
	}
}
