package kafka

import (
	"context"
	"io"

	"github.com/segmentio/kafka-go/protocol"
	"github.com/segmentio/kafka-go/protocol/heartbeat"
)

// beat is a heartbeat that reaches the group's coordinator. The one of kafka-go 0.4.51 goes to any
// broker, and it reads the two fields of a newer answer in the wrong order. Version 0 has only one
// of them.
type beat struct{ heartbeat.Request }

// Group makes the transport send it to the coordinator.
func (b *beat) Group() string { return b.GroupID }

// Required says that the exchange is ours, whatever version the broker would speak.
func (b *beat) Required(map[protocol.ApiKey]int16) bool { return true }

// RawExchange is the exchange. A connection has one request at a time, so the correlation id is of
// no use.
func (b *beat) RawExchange(rw io.ReadWriter) (protocol.Message, error) {
	return protocol.RoundTrip(rw, 0, 0, "", &b.Request)
}

var (
	_ protocol.GroupMessage = (*beat)(nil)
	_ protocol.RawExchanger = (*beat)(nil)
)

// heartbeat asks the coordinator whether the generation still holds.
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
