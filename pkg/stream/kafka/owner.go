package kafka

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	segmentio "github.com/segmentio/kafka-go"
)

// ownerTopic, followed by the owner, is the name of an empty topic that marks whose log it is. It
// is a name, not a record: a topic is created at once or not at all, and is seen by everyone who
// lists topics.
const ownerTopic = "owner."

// Claim implements stream.Log. If two claim at the same moment, neither may get the log. Brokers
// that do not let us create topics leave it unmarked. Claim repeats what fails until ctx ends.
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
	owners, brokers, err := c.owners(ctx, c.client.Addr)
	if err != nil {
		return "", err
	}
	marked, others := split(owners, owner)
	switch {
	case len(others) > 0 && !take:
		return others[0], nil
	case len(others) > 0:
		if err := c.unmark(ctx, brokers, others...); err != nil {
			return "", err
		}
	}
	if marked {
		return owner, nil
	}
	if others, err = c.mark(ctx, brokers, owner); err != nil || len(others) == 0 || take {
		return owner, err
	}
	return others[0], c.unmark(ctx, brokers, owner)
}

// split removes one owner from a list of owners.
func split(owners []string, owner string) (marked bool, others []string) {
	others = slices.DeleteFunc(slices.Clone(owners), func(o string) bool { return o == owner })
	return len(others) < len(owners), others
}

// owners returns the owners whose marks a broker knows, and the brokers.
func (c *cluster) owners(ctx context.Context, broker net.Addr) (owners []string,
	brokers []segmentio.Broker, err error) {
	client, closeClient, err := c.allTopics(broker)
	if err != nil {
		return nil, nil, err
	}
	defer closeClient()
	known, err := client.Metadata(ctx, &segmentio.MetadataRequest{})
	if err != nil {
		return nil, nil, err
	}
	for _, topic := range known.Topics {
		if name, ok := strings.CutPrefix(topic.Name, c.config.Prefix+ownerTopic); ok {
			owners = append(owners, name)
		}
	}
	slices.Sort(owners)
	return owners, known.Brokers, nil
}

// allTopics returns a client that reads the metadata of all topics: the log's own client knows only
// its three.
func (c *cluster) allTopics(broker net.Addr) (client *segmentio.Client, closeClient func(),
	err error) {
	transport, err := c.newTransport(nil)
	if err != nil {
		return nil, nil, err
	}
	return &segmentio.Client{Addr: broker, Transport: transport},
		transport.CloseIdleConnections, nil
}

// agree waits until every broker knows owners as wanted, and returns the owners of all brokers. A
// broker learns of a topic some time after the controller has responded. Without the wait, a
// lagging broker could name an owner whose mark is gone. Or two who claim at once could each
// overlook the other. Marks have one order, so whoever sees its own mark sees all earlier ones.
func (c *cluster) agree(ctx context.Context, brokers []segmentio.Broker,
	wanted func(owners []string) bool) (all []string, err error) {
	for _, broker := range brokers {
		address := segmentio.TCP(net.JoinHostPort(broker.Host, strconv.Itoa(broker.Port)))
		for looks := 1; ; looks++ {
			owners, _, err := c.owners(ctx, address)
			if err != nil {
				return nil, fmt.Errorf("broker %d: %w", broker.ID, err)
			}
			if wanted(owners) {
				all = append(all, owners...)
				break
			}
			if !pauses.Wait(ctx, c.config.Clock, looks) {
				return nil, fmt.Errorf("broker %d does not know the mark: %w", broker.ID, ctx.Err())
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all), nil
}

// mark makes owner the log's owner, and returns the other owners with marks.
func (c *cluster) mark(ctx context.Context, brokers []segmentio.Broker,
	owner string) (others []string, err error) {
	client, closeClient, err := c.allTopics(c.client.Addr) // it waits until it knows the new topic
	if err != nil {
		return nil, err
	}
	defer closeClient()
	name := c.config.Prefix + ownerTopic + owner
	response, err := client.CreateTopics(ctx,
		&segmentio.CreateTopicsRequest{Topics: []segmentio.TopicConfig{{
			Topic: name, NumPartitions: 1, ReplicationFactor: c.replicas(len(brokers))}}})
	if err != nil {
		return nil, err
	}
	switch err := response.Errors[name]; {
	case err == nil, errors.Is(err, segmentio.TopicAlreadyExists):
	case errors.Is(err, segmentio.TopicAuthorizationFailed),
		errors.Is(err, segmentio.ClusterAuthorizationFailed):
		c.config.Logger.Warn("kafka: the brokers do not let this node mark the log as its cluster's", "topic", name, "error", err)
		return nil, nil
	default:
		return nil, fmt.Errorf("topic %s: %w", name, err)
	}
	all, err := c.agree(ctx, brokers, func(owners []string) bool {
		return slices.Contains(owners, owner)
	})
	_, others = split(all, owner)
	return others, err
}

// unmark removes owners' marks from the log.
func (c *cluster) unmark(ctx context.Context, brokers []segmentio.Broker,
	owners ...string) error {
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
	_, err = c.agree(ctx, brokers, func(known []string) bool {
		return !slices.ContainsFunc(known, func(name string) bool {
			return slices.Contains(owners, name)
		})
	})
	return err
}
