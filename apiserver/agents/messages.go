package agents

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// message is what the gateway itself reads of a JSON-RPC message.
type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
}

// methods are those of the protocol that a server may be sent. The library answers the others with
// a bare text, which clients take for a broken transport.
var methods = []string{"completion/complete", "initialize", "logging/setLevel",
	"notifications/cancelled", "notifications/initialized", "notifications/progress",
	"notifications/roots/list_changed", "ping", "prompts/get", "prompts/list", "resources/list",
	"resources/read", "resources/subscribe", "resources/templates/list", "resources/unsubscribe",
	"server/discover", "subscriptions/listen", "tools/call", "tools/list"}

// answerItself answers what no library need see: a version of the protocol, or a method, that
// nobody here knows, and params of other types. nil: it is the library's.
func answerItself(body []byte, version string) http.Handler {
	var m message
	if json.Unmarshal(body, &m) != nil {
		return nil // the library says what is wrong
	}
	if known := mcp.SupportedProtocolVersions(); version != "" && !slices.Contains(known, version) {
		return refusal(m.ID, http.StatusBadRequest, mcp.CodeUnsupportedProtocolVersion,
			"this version of the protocol is not spoken here",
			mcp.UnsupportedProtocolVersionData{Supported: known, Requested: version})
	}
	if m.Method == "" || slices.Contains(methods, m.Method) {
		return answerParams(m, version)
	}
	if m.ID == nil {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusAccepted) // nobody is told of a notification that is ignored
		})
	}
	status := http.StatusOK
	if version >= stateless {
		status = http.StatusNotFound
	}
	return refusal(m.ID, status, jsonrpc.CodeMethodNotFound,
		fmt.Sprintf("there is no method %.100q", m.Method), nil)
}

// refusal answers a message with an error of JSON-RPC.
func refusal(id json.RawMessage, status int, code int64, text string, data any) http.Handler {
	if id == nil {
		id = json.RawMessage("null")
	}
	said := map[string]any{"code": code, "message": text}
	if data != nil {
		said["data"] = data
	}
	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": id, "error": said})
	if err != nil {
		panic(err) // texts, numbers and valid JSON
	}
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", jsonType)
		w.WriteHeader(status)
		_, _ = w.Write(body) // whoever has gone misses it
	})
}
