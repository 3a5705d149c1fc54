package kafka

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	segmentio "github.com/segmentio/kafka-go"
)

// ownerTopic begins the name of an empty topic that says whose the log is; the owner ends it. It is
// a name, not a record, because a topic is made at once or not at all, and whoever lists the topics
// sees it.
const ownerTopic = "owner."

// Claim makes the log its owner's, unless it is another one's already, and returns whose it is.
// With take it is the owner's from now on, whoever had it. An owner is 1 to 64 letters and digits.
// Of two who claim at the same moment it may be nobody's. Brokers that do not let us make topics
// leave it unmarked. It repeats what fails until ctx ends.
func (l *Log) Claim(ctx context.Context, owner string, take bool) (whose string, err error) {
	err = l.cluster.attempt(ctx, "claim", func(ctx context.Context) (err error) {
		ctx, cancel := context.WithTimeout(ctx, adminTimeout)
		defer cancel()
		whose, err = l.cluster.claim(ctx, owner, take)
		return err
	})
	return whose, err
}

func (c *cluster) claim(ctx context.Context, owner string, take bool) (whose string, err error) {
	marked, others, brokers, err := c.owners(ctx, owner)
	switch {
	case err != nil:
		return "", err
	case len(others) > 0 && !take:
		return others[0], nil
	case len(others) > 0:
		if err := c.unmark(ctx, others...); err != nil {
			return "", err
		}
	}
	if marked {
		return owner, nil
	}
	if err := c.mark(ctx, owner, brokers); err != nil {
		return "", err
	}
	if _, others, _, err = c.owners(ctx, owner); err != nil || len(others) == 0 || take {
		return owner, err
	}
	return others[0], c.unmark(ctx, owner)
}

// owners says whether the log is marked as an owner's, whose it is besides, and how many brokers
// there are.
func (c *cluster) owners(ctx context.Context, owner string) (marked bool, others []string,
	brokers int, err error) {
	client, closeClient, err := c.allTopics()
	if err != nil {
		return false, nil, 0, err
	}
	defer closeClient()
	known, err := client.Metadata(ctx, &segmentio.MetadataRequest{})
	if err != nil {
		return false, nil, 0, err
	}
	for _, topic := range known.Topics {
		name, ok := strings.CutPrefix(topic.Name, c.config.Prefix+ownerTopic)
		switch {
		case !ok:
		case name == owner:
			marked = true
		default:
			others = append(others, name)
		}
	}
	slices.Sort(others)
	return marked, others, len(known.Brokers), nil
}

// allTopics is a client that has just asked for all topics: the log's own knows its three alone.
func (c *cluster) allTopics() (client *segmentio.Client, closeClient func(), err error) {
	transport, err := c.newTransport(nil)
	if err != nil {
		return nil, nil, err
	}
	return &segmentio.Client{Addr: c.client.Addr, Transport: transport},
		transport.CloseIdleConnections, nil
}

func (c *cluster) mark(ctx context.Context, owner string, brokers int) error {
	name := c.config.Prefix + ownerTopic + owner
	client, closeClient, err := c.allTopics()
	if err != nil {
		return err
	}
	defer closeClient()
	response, err := client.CreateTopics(ctx,
		&segmentio.CreateTopicsRequest{Topics: []segmentio.TopicConfig{{
			Topic: name, NumPartitions: 1, ReplicationFactor: c.replicas(brokers)}}})
	if err != nil {
		return err
	}
	switch err := response.Errors[name]; {
	case err == nil, errors.Is(err, segmentio.TopicAlreadyExists):
		return nil
	case errors.Is(err, segmentio.TopicAuthorizationFailed),
		errors.Is(err, segmentio.ClusterAuthorizationFailed):
		c.config.Logger.Warn("kafka: the brokers do not let this node mark the log as its cluster's", "topic", name, "error", err)
		return nil
	default:
		return fmt.Errorf("topic %s: %w", name, err)
	}
}

func (c *cluster) unmark(ctx context.Context, owners ...string) error {
	request := segmentio.DeleteTopicsRequest{}
	for _, owner := range owners {
		request.Topics = append(request.Topics, c.config.Prefix+ownerTopic+owner)
	}
	response, err := c.client.DeleteTopics(ctx, &request)
	if err != nil {
		return err
	}
	for name, err := range response.Errors {
		if err != nil && !errors.Is(err, segmentio.UnknownTopicOrPartition) {
			return fmt.Errorf("topic %s: %w", name, err)
		}
	}
	return nil
}
