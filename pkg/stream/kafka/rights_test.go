package kafka_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	segmentio "github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/sasl/plain"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"shoal.dev/shoal/pkg/stream"
	"shoal.dev/shoal/pkg/stream/kafka"
)

const rightsFile = "../../../deploy/rights/kafka"

// rights returns the rights that the script gives each role.
func rights(t *testing.T) map[string][]kfake.ACL {
	t.Helper()
	file, err := os.Open(rightsFile)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	found, inside := map[string][]kfake.ACL{}, false
	for lines := bufio.NewScanner(file); lines.Scan(); {
		words := strings.Fields(lines.Text())
		switch {
		case strings.HasSuffix(lines.Text(), "<< 'RIGHTS'"):
			inside = true
		case lines.Text() == "RIGHTS":
			inside = false
		case inside:
			acl := kfake.ACL{Name: kafka.DefaultPrefix + strings.Join(words[4:], ""), Allow: true}
			acl.Operation, err = kmsg.ParseACLOperation(words[1])
			if err == nil {
				acl.Resource, err = kmsg.ParseACLResourceType(words[2])
			}
			if err == nil {
				acl.Pattern, err = kmsg.ParseACLResourcePatternType(words[3])
			}
			if err != nil {
				t.Fatalf("%q: %v", lines.Text(), err)
			}
			found[words[0]] = append(found[words[0]], acl)
		}
	}
	return found
}

func openAs(t *testing.T, brokers []string, role string) *kafka.Log {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	log, err := kafka.Open(ctx, kafka.Config{Brokers: brokers, Partitions: 1, Node: role,
		SASL:   &kafka.SASL{Mechanism: "PLAIN", User: role, Password: role + "-pw"},
		Logger: slog.New(slog.NewTextHandler(t.Output(), nil))})
	if err != nil {
		t.Fatalf("%s: %v", role, err)
	}
	t.Cleanup(func() { _ = log.Close() })
	return log
}

// TestRightsOfRoles: with the rights in deploy/rights/kafka, each role can open the log and use its
// own topics and groups, but no others.
func TestRightsOfRoles(t *testing.T) {
	options := []kfake.Opt{kfake.EnableSASL(), kfake.EnableACLs()}
	all := []kfake.ACL{}
	for _, resource := range []kmsg.ACLResourceType{kmsg.ACLResourceTypeTopic,
		kmsg.ACLResourceTypeGroup} {
		all = append(all, kfake.ACL{Resource: resource, Name: kafka.DefaultPrefix,
			Pattern: kmsg.ACLResourcePatternTypePrefixed, Operation: kmsg.ACLOperationAll,
			Allow: true})
	}
	options = append(options, kfake.User("PLAIN", "admin", "admin-pw", all...))
	for role, acls := range rights(t) {
		options = append(options, kfake.User("PLAIN", role, role+"-pw", acls...))
	}
	holdRights(t, fakeBrokers(t, options...))
}

// documented returns what each role writes and reads, from the table in deploy/README.md. Groups
// are named TOPIC.GROUP.
func documented(t *testing.T) map[string]struct{ writes, reads, groups []string } {
	t.Helper()
	text, err := os.ReadFile("../../../deploy/README.md")
	if err != nil {
		t.Fatal(err)
	}
	roles := map[string]struct{ writes, reads, groups []string }{}
	_, table, _ := strings.Cut(string(text), "| role | reads from Kafka | writes to Kafka | "+
		"ClickHouse |\n")
	for line := range strings.Lines(table) {
		cells := strings.Split(line, "|")
		if len(cells) != 6 {
			break
		}
		var may struct{ writes, reads, groups []string }
		for _, name := range codeSpan.FindAllStringSubmatch(cells[2], -1) {
			if strings.Contains(name[1], ".") {
				may.groups = append(may.groups, name[1])
			} else {
				may.reads = append(may.reads, name[1])
			}
		}
		for _, name := range codeSpan.FindAllStringSubmatch(cells[3], -1) {
			may.writes = append(may.writes, name[1])
		}
		if role := strings.TrimSpace(cells[1]); !strings.HasPrefix(role, "--") {
			roles[role] = may
		}
	}
	if len(roles) != 5 {
		t.Fatalf("the table has the roles %v", roles)
	}
	return roles
}

var codeSpan = regexp.MustCompile("`([a-z.]+)`")

// holdRights compares what brokers let each role do with what the role has to do.
func holdRights(t *testing.T, brokers []string) {
	openAs(t, brokers, "admin")
	for role, may := range documented(t) {
		log := openAs(t, brokers, role)
		if role == "controlplane" {
			if whose, err := log.Claim(t.Context(), "cluster1", true); err != nil ||
				whose != "cluster1" {
				t.Errorf("%s: %q, %v", role, whose, err)
			}
		}
		transport := &segmentio.Transport{SASL: plain.Mechanism{Username: role,
			Password: role + "-pw"}}
		t.Cleanup(transport.CloseIdleConnections)
		client := &segmentio.Client{Addr: segmentio.TCP(brokers...), Transport: transport}
		for _, topic := range stream.Topics() {
			if err := produce(t, client, topic); allowed(t, role,
				err) != slices.Contains(may.writes, topic.String()) {
				t.Errorf("%s writes %s: %v", role, topic, err)
			}
			if err := fetch(t, client, topic); allowed(t, role, err) != slices.Contains(may.reads,
				topic.String()) {
				t.Errorf("%s reads %s: %v", role, topic, err)
			}
		}
		for topic, group := range map[stream.Topic]string{stream.Pages: "pages.ingest",
			stream.Receipts: "receipts.billing"} {
			err := commit(t, client, topic, group)
			for isStarting(err) {
				select {
				case <-t.Context().Done():
					t.Fatal(err)
				case <-time.After(100 * time.Millisecond):
				}
				err = commit(t, client, topic, group)
			}
			if allowed(t, role, err) != slices.Contains(may.groups, group) {
				t.Errorf("%s commits to %s: %v", role, group, err)
			}
		}
	}
}

// isStarting reports whether a broker does not keep a group yet, as at its first commit.
func isStarting(err error) bool {
	return errors.Is(err, segmentio.NotCoordinatorForGroup) ||
		errors.Is(err, segmentio.GroupCoordinatorNotAvailable) ||
		errors.Is(err, segmentio.GroupLoadInProgress)
}

// allowed reports whether brokers did as asked; they may refuse only for lack of rights.
func allowed(t *testing.T, role string, err error) bool {
	t.Helper()
	if err != nil && !errors.Is(err, segmentio.TopicAuthorizationFailed) &&
		!errors.Is(err, segmentio.GroupAuthorizationFailed) {
		t.Errorf("%s: %v", role, err)
	}
	return err == nil
}

func produce(t *testing.T, client *segmentio.Client, topic stream.Topic) error {
	t.Helper()
	response, err := client.Produce(t.Context(),
		&segmentio.ProduceRequest{Topic: kafka.DefaultPrefix + topic.String(),
			RequiredAcks: segmentio.RequireAll,
			Records: segmentio.NewRecordReader(segmentio.Record{
				Value: segmentio.NewBytes([]byte("x"))})})
	if err != nil {
		return err
	}
	return response.Error
}

func fetch(t *testing.T, client *segmentio.Client, topic stream.Topic) error {
	t.Helper()
	response, err := client.Fetch(t.Context(),
		&segmentio.FetchRequest{Topic: kafka.DefaultPrefix + topic.String(),
			MinBytes: 0, MaxBytes: 1 << 20, MaxWait: time.Millisecond})
	if err != nil {
		return err
	}
	if response.Records != nil {
		if _, err := response.Records.ReadRecord(); err != nil && !errors.Is(err, io.EOF) {
			t.Error(err)
		}
	}
	return response.Error
}

func commit(t *testing.T, client *segmentio.Client, topic stream.Topic, group string) error {
	t.Helper()
	name := kafka.DefaultPrefix + topic.String()
	response, err := client.OffsetCommit(t.Context(),
		&segmentio.OffsetCommitRequest{GroupID: kafka.DefaultPrefix + group,
			GenerationID: -1, Topics: map[string][]segmentio.OffsetCommit{
				name: {{Partition: 0, Offset: 0}}}})
	if err != nil {
		return err
	}
	for _, partition := range response.Topics[name] {
		err = errors.Join(err, partition.Error)
	}
	return err
}
