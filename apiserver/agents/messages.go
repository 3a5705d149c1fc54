package agents

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// message holds the members of a JSON-RPC message that the gateway itself reads.
type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
}

// methods are the protocol's methods for servers. The library answers any other method with bare
// text, which clients take for a broken transport.
var methods = []string{"completion/complete", "initialize", "logging/setLevel",
	"notifications/cancelled", "notifications/initialized", "notifications/progress",
	"notifications/roots/list_changed", "ping", "prompts/get", "prompts/list", "resources/list",
	"resources/read", "resources/subscribe", "resources/templates/list", "resources/unsubscribe",
	"server/discover", "subscriptions/listen", "tools/call", "tools/list"}

// answerItself handles what the library would answer badly: unknown versions of the protocol,
// unknown methods, and params of wrong types. It returns nil to leave the message to the library.
func answerItself(body []byte, version string) http.Handler {
	var m message
	if json.Unmarshal(body, &m) != nil {
		return nil // the library reports the error
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
			w.WriteHeader(http.StatusAccepted) // an unknown notification is ignored silently
		})
	}
	status := http.StatusOK
	if version >= stateless {
		status = http.StatusNotFound
	}
	return refusal(m.ID, status, jsonrpc.CodeMethodNotFound,
		fmt.Sprintf("there is no method %.100q", m.Method), nil)
}

// refusal answers a message with a JSON-RPC error.
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
		panic(err) // only texts, numbers and valid JSON: Marshal cannot fail
	}
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", jsonType)
		w.WriteHeader(status)
		_, _ = w.Write(body) // the client may have left
	})
}
