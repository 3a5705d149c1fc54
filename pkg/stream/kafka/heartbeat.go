package kafka

import (
	"context"
	"io"

	"github.com/segmentio/kafka-go/protocol"
	"github.com/segmentio/kafka-go/protocol/heartbeat"
)

// beat is a heartbeat that reaches the group's coordinator. kafka-go 0.4.51 sends its own to any
// broker, and reads the two fields of a newer response in the wrong order. Version 0 has only one
// of them.
type beat struct{ heartbeat.Request }

// Group makes the transport send the request to the coordinator.
func (b *beat) Group() string { return b.GroupID }

// Required says to use our exchange, whatever version the broker speaks.
func (b *beat) Required(map[protocol.ApiKey]int16) bool { return true }

// RawExchange exchanges request and response. A connection has one request at a time, so the
// correlation id does not matter.
func (b *beat) RawExchange(rw io.ReadWriter) (protocol.Message, error) {
	return protocol.RoundTrip(rw, 0, 0, "", &b.Request)
}

var (
	_ protocol.GroupMessage = (*beat)(nil)
	_ protocol.RawExchanger = (*beat)(nil)
)

// heartbeat asks the coordinator whether the generation is still current.
func (m *member) heartbeat(ctx context.Context, generation int) error {
	ctx, cancel := context.WithTimeout(ctx, sessionTimeout/3)
	defer cancel()
	response, err := m.log.cluster.transport.RoundTrip(ctx, m.client().Addr,
		&beat{heartbeat.Request{
			GroupID: m.group.name, GenerationID: int32(generation), MemberID: m.id}})
	if err != nil {
		return err
	}
	return errorOf(response.(*heartbeat.Response).ErrorCode)
}
