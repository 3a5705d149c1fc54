package kafka

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	segmentio "github.com/segmentio/kafka-go"
)

// durable checks that existing topics have the replicas that are asked for. With topics that
// somebody else made, one broker's loss may lose acknowledged records. That is an error for good if
// Config.Replicas is set, otherwise a warning.
func (c *cluster) durable(ctx context.Context, known layout) error {
	brokers, err := c.client.Metadata(ctx, &segmentio.MetadataRequest{Topics: c.names})
	if err != nil {
		return err
	}
	want := c.replicas(len(brokers.Brokers))
	short := known.thin(want)
	if want >= 3 {
		confirmed, err := c.confirmed(ctx)
		if err != nil {
			return err
		}
		for _, name := range c.names {
			if n, told := confirmed[name]; told && n < 2 {
				short = append(short, fmt.Sprintf("topic %s has min.insync.replicas %d and "+
					"should have 2", name, n))
			}
		}
	}
	switch {
	case len(short) == 0:
		return nil
	case c.config.Replicas > 0:
		return fmt.Errorf("%w: with %d replicas asked for, %s: change the topics, or ask for less",
			errForGood,
			want, strings.Join(short, "; "))
	}
	c.config.Logger.Warn("kafka: the loss of one broker may lose records", "topics",
		strings.Join(short, "; "))
	return nil
}

// thin returns complaints about topics whose partitions have fewer replicas than wanted.
func (l layout) thin(want int) (short []string) {
	for _, topic := range l.topics {
		least := want
		for _, partition := range topic.Partitions {
			least = min(least, len(partition.ReplicaNodes))
		}
		if least < want {
			short = append(short,
				fmt.Sprintf("topic %s has %d replicas and should have %d", topic.Name, least, want))
		}
	}
	return short
}

// confirmed returns min.insync.replicas by topic, as far as the brokers disclose it.
func (c *cluster) confirmed(ctx context.Context) (map[string]int, error) {
	const setting = "min.insync.replicas"
	request := &segmentio.DescribeConfigsRequest{}
	for _, name := range c.names {
		request.Resources = append(request.Resources, segmentio.DescribeConfigRequestResource{
			ResourceType: segmentio.ResourceTypeTopic, ResourceName: name,
			ConfigNames: []string{setting}})
	}
	response, err := c.client.DescribeConfigs(ctx, request)
	if err != nil {
		return nil, err
	}
	found := map[string]int{}
	for _, resource := range response.Resources {
		for _, entry := range resource.ConfigEntries {
			if n, err := strconv.Atoi(entry.ConfigValue); err == nil &&
				entry.ConfigName == setting {
				found[resource.ResourceName] = n
			}
		}
	}
	return found, nil
}
