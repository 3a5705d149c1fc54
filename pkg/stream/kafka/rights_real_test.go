package kafka_test

import (
	"flag"
	"testing"

	segmentio "github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/sasl/plain"
)

// securedBroker is a Kafka with an authorizer, SASL PLAIN and these users: admin, who may do
// everything, and one per role. Each password is the user's name and "-pw".
var securedBroker = flag.String("secured", "", "HOST:PORT of a broker that holds rights, whose "+
	"topics and rights the test makes")

// scripted leaves granting the rights to the script itself, run with Kafka's own tool.
var scripted = flag.Bool("scripted", false, "the broker of -secured has its rights from "+
	"deploy/rights/kafka; the test gives none")

// TestRightsOfRolesOnABroker is TestRightsOfRoles against Kafka's own authorizer:
//
//	go test ./pkg/stream/kafka -run RightsOfRolesOnABroker -secured HOST:PORT
//
// With -scripted, the broker has the rights that the script gave:
//
//	deploy/rights/kafka --bootstrap-server HOST:PORT --command-config ADMIN.properties
func TestRightsOfRolesOnABroker(t *testing.T) {
	if *securedBroker == "" {
		return // test services have no authorizer
	}
	if !*scripted {
		giveRights(t)
	}
	holdRights(t, []string{*securedBroker})
}

// giveRights gives each role the rights in the script.
func giveRights(t *testing.T) {
	t.Helper()
	transport := &segmentio.Transport{SASL: plain.Mechanism{Username: "admin",
		Password: "admin-pw"}}
	t.Cleanup(transport.CloseIdleConnections)
	admin := &segmentio.Client{Addr: segmentio.TCP(*securedBroker), Transport: transport}
	var entries []segmentio.ACLEntry
	for role, acls := range rights(t) {
		for _, acl := range acls {
			entries = append(entries, segmentio.ACLEntry{
				ResourceType:        segmentio.ResourceType(acl.Resource),
				ResourceName:        acl.Name,
				ResourcePatternType: segmentio.PatternType(acl.Pattern),
				Principal:           "User:" + role,
				Host:                "*",
				Operation:           segmentio.ACLOperationType(acl.Operation),
				PermissionType:      segmentio.ACLPermissionTypeAllow,
			})
		}
	}
	response, err := admin.CreateACLs(t.Context(), &segmentio.CreateACLsRequest{ACLs: entries})
	if err != nil {
		t.Fatal(err)
	}
	for i, err := range response.Errors {
		if err != nil {
			t.Fatalf("%+v: %v", entries[i], err)
		}
	}
}
