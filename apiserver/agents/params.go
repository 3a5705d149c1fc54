package agents

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"shoal.dev/shoal/apiserver/internal/operation"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/jsontext"
)

// envelope is the frame of every message. The library would refuse wrong types with an error in
// terms of its own code.
type envelope struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Method  *string         `json:"method"`
	Params  json.RawMessage `json:"params"`
	Error   *struct {
		Code    int64  `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
}

// checkMessage refuses anything but a single message. A batch would be many calls in one.
func checkMessage(body []byte) error {
	if len(body) > maxMessage {
		return fault.New(fault.PayloadTooLarge, "a message may have at most %d bytes", maxMessage)
	}
	if !utf8.Valid(body) || !json.Valid(body) {
		return fault.New(fault.InvalidBody, "a message is JSON, in UTF-8")
	}
	if !isObject(body) {
		return fault.New(fault.InvalidBody, "a message is one JSON object")
	}
	var e envelope
	if err := json.Unmarshal(body, &e); err != nil {
		member, said := jsontext.Reason(err)
		return fault.Invalid(fault.InvalidBody, member, "%s", said)
	}
	switch id := string(e.ID); {
	case e.Version != "2.0":
		return fault.Invalid(fault.InvalidBody, "jsonrpc", `must be "2.0"`)
	case id != "" && (id[0] == '{' || id[0] == '[' || id == "true" || id == "false"):
		return fault.Invalid(fault.InvalidBody, "id", "must be text or a number")
	case isNumber(id) && !isExact(id):
		return fault.Invalid(fault.InvalidBody, "id", "must be a whole number of at most 2^53-1")
	}
	if _, err := jsonrpc.DecodeMessage(body); err != nil {
		return fault.New(fault.InvalidBody, "the message is nested too deeply, or is no request")
	}
	return nil
}

// isNumber reports whether a JSON value is a number.
func isNumber(value string) bool {
	return value != "" && (value[0] == '-' || '0' <= value[0] && value[0] <= '9')
}

// isExact reports whether a number is an integer that a float64 holds exactly. The library would
// answer another id otherwise.
func isExact(number string) bool {
	n, err := strconv.ParseFloat(number, 64)
	return err == nil && n == math.Trunc(n) && math.Abs(n) < 1<<53
}

// refuseMessage answers a refused request with a JSON-RPC error, so that the client can match it by
// its id. Otherwise the client would end its session. It returns nil if there is no id.
func refuseMessage(body []byte, err error) http.Handler {
	var m struct {
		ID json.RawMessage `json:"id"`
	}
	_ = json.Unmarshal(body, &m) // without an id, m.ID stays empty
	if id := string(m.ID); !isNumber(id) && !strings.HasPrefix(id, `"`) {
		return nil
	}
	problem := operation.NewProblem(err, "")
	return refusal(m.ID, problem.Status, jsonrpc.CodeInvalidRequest, problem.Detail, nil)
}

// paramsOf returns what the library decodes a method's params into; nil: nothing.
func paramsOf(method string) any {
	switch method {
	case "initialize":
		return &mcp.InitializeParams{}
	case "tools/call":
		return &mcp.CallToolParamsRaw{}
	case "tools/list":
		return &mcp.ListToolsParams{}
	case "prompts/get":
		return &mcp.GetPromptParams{}
	case "prompts/list":
		return &mcp.ListPromptsParams{}
	case "resources/read":
		return &mcp.ReadResourceParams{}
	case "resources/list":
		return &mcp.ListResourcesParams{}
	case "resources/templates/list":
		return &mcp.ListResourceTemplatesParams{}
	case "resources/subscribe":
		return &mcp.SubscribeParams{}
	case "resources/unsubscribe":
		return &mcp.UnsubscribeParams{}
	case "subscriptions/listen":
		return &mcp.SubscriptionsListenParams{}
	case "completion/complete":
		return &mcp.CompleteParams{}
	case "logging/setLevel":
		return &struct {
			Level string `json:"level"`
		}{}
	case "ping":
		return &mcp.PingParams{}
	case "server/discover":
		return &mcp.DiscoverParams{}
	}
	return nil
}

// answerParams refuses a request whose params do not fit its method, and names the member. It
// returns nil if they fit.
func answerParams(m message, version string) http.Handler {
	params := paramsOf(m.Method)
	if params == nil || m.ID == nil || len(m.Params) == 0 || string(m.Params) == "null" {
		return nil
	}
	err := json.Unmarshal(m.Params, params)
	if err == nil { // the library ignores arguments that it cannot decode
		err = json.Unmarshal(m.Params, new(any))
	}
	if err == nil {
		return nil
	}
	at, said := jsontext.Reason(err)
	if at != "" {
		at = "." + at
	}
	status := http.StatusOK
	if version >= stateless {
		status = http.StatusBadRequest
	}
	return refusal(m.ID, status, jsonrpc.CodeInvalidParams,
		fmt.Sprintf("params%.200s %.200s", at, said), nil)
}
