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

// split takes one owner out of a list of them.
func split(owners []string, owner string) (marked bool, others []string) {
	others = slices.DeleteFunc(slices.Clone(owners), func(o string) bool { return o == owner })
	return len(others) < len(owners), others
}

// owners says whose mark a broker knows, by name, and which brokers there are.
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

// allTopics is a client that has just asked a broker for all topics: the log's own knows its three
// alone.
func (c *cluster) allTopics(broker net.Addr) (client *segmentio.Client, closeClient func(),
	err error) {
	transport, err := c.newTransport(nil)
	if err != nil {
		return nil, nil, err
	}
	return &segmentio.Client{Addr: broker, Transport: transport},
		transport.CloseIdleConnections, nil
}

// agree waits until the owners that every broker knows are as wanted, and returns those of all of
// them. A broker learns of a topic some time after the controller has answered. Without the wait a
// broker that lags behind would name an owner whose mark is gone. Or of two who claim at once each
// would overlook the other. The marks have one order, and who sees its own sees all before it.
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

// mark makes the log its owner's, and returns who marked it besides.
func (c *cluster) mark(ctx context.Context, brokers []segmentio.Broker,
	owner string) (others []string, err error) {
	client, closeClient, err := c.allTopics(c.client.Addr) // it waits until it knows the new one
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

// unmark takes owners' marks from the log.
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
