package webhooks

import (
	"encoding/json"
	"fmt"
	"time"

	"shoal.dev/shoal/apiserver/internal/notices"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
)

// message is the body of a request. Later versions may add members, but never change their meaning.
type message struct {
	Type      model.Event `json:"type"`
	Timestamp string      `json:"timestamp"` // when it happened, not when it is sent
	Data      data        `json:"data"`
}

// data says what happened, and what the event is about.
type data struct {
	ID    ids.ID `json:"id"` // of the notification; equals the header webhook-id
	Title string `json:"title"`
	Text  string `json:"text"`
	notices.NotificationFacts
}

// newMessage encodes a notice.
func newMessage(n *client.Notice) ([]byte, error) {
	told := message{Type: n.Event,
		Timestamp: time.UnixMilli(n.At).UTC().Format("2006-01-02T15:04:05.000Z"),
		Data: data{ID: n.ID, Title: notices.Title(n), Text: notices.Text(n),
			NotificationFacts: notices.FactsOf(n)}}
	body, err := json.Marshal(told)
	if err != nil {
		return nil, fmt.Errorf("apiserver: encode the message of a webhook: %w", err)
	}
	return body, nil
}
