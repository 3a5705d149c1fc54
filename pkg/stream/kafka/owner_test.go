package kafka_test

import (
	"context"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"shoal.dev/shoal/pkg/stream/kafka"
)

func TestClaimOnFake(t *testing.T) { testClaim(t, fakeBrokers(t)) }

func TestClaim(t *testing.T) { testClaim(t, realBrokers(t)) }

// testClaim: a log belongs to the first one that claims it, until another one takes it. Another
// prefix is another log.
func testClaim(t *testing.T, brokers []string) {
	prefix := newPrefix(t, brokers)
	first, again := openPrefix(t, brokers, 1, prefix), openPrefix(t, brokers, 1, prefix)
	elsewhere := open(t, brokers, 1)
	for i, step := range []struct {
		log   *kafka.Log
		owner string
		take  bool
		want  string
	}{
		{first, "a1", false, "a1"}, {again, "a1", false, "a1"}, {again, "b2", false, "a1"},
		{elsewhere, "b2", false, "b2"},
		{again, "b2", true, "b2"}, {first, "a1", false, "b2"}, {first, "b2", false, "b2"},
	} {
		if whose, err := step.log.Claim(t.Context(), step.owner, step.take); err != nil ||
			whose != step.want {
			t.Errorf("step %d: the log is %q's, %v; want %q's", i, whose, err, step.want)
		}
	}
}

// TestClaimOfABrokerBehind: a claim returns once every broker knows of it. Otherwise a broker that
// still names an old owner would refuse the new one.
func TestClaimOfABrokerBehind(t *testing.T) {
	fake := fakeCluster(t)
	brokers := fake.ListenAddrs()
	prefix := newPrefix(t, brokers)
	log := openPrefix(t, brokers, 1, prefix)
	if _, err := log.Claim(t.Context(), "a1", false); err != nil {
		t.Fatal(err)
	}
	var late atomic.Int32 // responses of one broker that will still name the old owner
	fake.ControlKey(int16(kmsg.Metadata), func(r kmsg.Request) (kmsg.Response, error, bool) {
		fake.KeepControl()
		if fake.CurrentNode() != 1 || late.Load() == 0 {
			return nil, nil, false
		}
		late.Add(-1)
		return staleMetadata(t, r, brokers, prefix+"owner.a1"), nil, true
	})
	fake.ControlKey(int16(kmsg.DeleteTopics), func(kmsg.Request) (kmsg.Response, error, bool) {
		late.Store(3)
		return nil, nil, false
	})
	if whose, err := log.Claim(t.Context(), "b2", true); err != nil || whose != "b2" {
		t.Errorf("the log is %q's, %v", whose, err)
	}
	if late.Load() > 0 {
		t.Error("a broker that still names the old owner was not waited for")
	}
}

// staleMetadata is the response of a broker that knows one topic.
func staleMetadata(t *testing.T, r kmsg.Request, brokers []string, topic string) kmsg.Response {
	t.Helper()
	answer := r.ResponseKind().(*kmsg.MetadataResponse)
	for id, address := range brokers {
		host, port, err := net.SplitHostPort(address)
		if err != nil {
			t.Error(err)
		}
		number, err := strconv.ParseInt(port, 10, 32)
		if err != nil {
			t.Error(err)
		}
		answer.Brokers = append(answer.Brokers, kmsg.MetadataResponseBroker{NodeID: int32(id),
			Host: host, Port: int32(number)})
	}
	answer.Topics = append(answer.Topics, kmsg.MetadataResponseTopic{Topic: &topic})
	return answer
}

// TestClaimAtOnce: of many who claim a log at once, at most one gets it.
func TestClaimAtOnce(t *testing.T) {
	brokers := fakeBrokers(t)
	prefix := newPrefix(t, brokers)
	owners := []string{"a", "b", "c", "d"}
	got := make([]string, len(owners))
	var claims sync.WaitGroup
	for i, owner := range owners {
		log := openPrefix(t, brokers, 1, prefix)
		claims.Go(func() {
			var err error
			if got[i], err = log.Claim(t.Context(), owner, false); err != nil {
				t.Error(err)
			}
		})
	}
	claims.Wait()
	have := 0
	for i, owner := range owners {
		if got[i] == owner {
			have++
		}
	}
	if have > 1 {
		t.Errorf("the log is that of %d: %v", have, got)
	}
}

// TestClaimWithoutTheRight: a client that may not create topics works on an unmarked log.
func TestClaimWithoutTheRight(t *testing.T) {
	brokers := fakeBrokers(t, kfake.EnableSASL(), kfake.EnableACLs(),
		kfake.SeedTopics(1, "test.tasks", "test.pages", "test.receipts"),
		allow(kmsg.ACLOperationRead, kmsg.ACLOperationWrite))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	log, err := kafka.Open(ctx, kafka.Config{Brokers: brokers, Prefix: "test.", Partitions: 1,
		SASL: &kafka.SASL{Mechanism: "SCRAM-SHA-256", User: user, Password: password}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = log.Close() }()
	if whose, err := log.Claim(ctx, "a", false); err != nil || whose != "a" {
		t.Errorf("the log is %q's, %v", whose, err)
	}
}
