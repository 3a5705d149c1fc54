// The suite requires logging and sampling, which the protocol is phasing out.
//
//lint:file-ignore SA1019 no operation does so
package agents_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"shoal.dev/shoal/apiserver/internal/auth"
	"shoal.dev/shoal/apiserver/internal/limits"
	"shoal.dev/shoal/apiserver/internal/operation"
	"shoal.dev/shoal/pkg/fault"
)

// said is the answer of fixtures.
type said struct {
	Text string `json:"text"`
}

// far is the progress of a fixture, in the form that runs use.
type far struct {
	State        string `json:"state"`
	SuccessLinks int    `json:"successLinks"`
	TotalLinks   int    `json:"totalLinks"`
}

// fixtureOperations are the suite's fixtures that can be operations.
func fixtureOperations() []*operation.Operation {
	declare := func(id string, effect operation.Effect, event any) operation.Declaration {
		return operation.Declaration{ID: id, Routes: operation.Routes("POST /" + id),
			Summary: "A fixture", Access: auth.Read, Agents: effect, Rate: limits.Read,
			Event: event}
	}
	type nothing struct{}
	type asking struct {
		Body struct {
			Message string `json:"message"`
		} `body:"json"`
	}
	return []*operation.Operation{
		operation.Define(declare("test_simple_text", operation.Reads, nil),
			func(context.Context, *operation.Caller, *nothing) (said, error) {
				return said{"This is a simple text response for testing."}, nil
			}),
		operation.Define(declare("test_error_handling", operation.Reads, nil),
			func(context.Context, *operation.Caller, *nothing) (said, error) {
				return said{}, fault.New(fault.InvalidRequest,
					"this tool intentionally returns an error for testing")
			}),
		operation.Define(declare("test_tool_with_progress", operation.Reads, far{}),
			func(context.Context, *operation.Caller, *nothing) (operation.Events, error) {
				return func(_ context.Context, to *operation.EventWriter) error {
					for _, done := range []int{0, 50, 100} {
						err := to.Send("status", "", far{"RUNNING", done, 100})
						if err != nil {
							return err
						}
					}
					return nil
				}, nil
			}),
		operation.Define(declare("test_elicitation", operation.Destroys, nil),
			func(_ context.Context, _ *operation.Caller, in *asking) (said, error) {
				return said{"agreed to " + in.Body.Message}, nil
			}),
	}
}

const (
	tinyPNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
	tinyWAV = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA="
)

// addFixtures adds what operations cannot be: media, questions to the client's model, prompts.
func addFixtures(server *mcp.Server) {
	text := func(text string) mcp.Content { return &mcp.TextContent{Text: text} }
	image := &mcp.ImageContent{Data: []byte(tinyPNG), MIMEType: "image/png"}
	audio := &mcp.AudioContent{Data: []byte(tinyWAV), MIMEType: "audio/wav"}
	resource := func(uri string) mcp.Content {
		return &mcp.EmbeddedResource{Resource: &mcp.ResourceContents{URI: uri,
			MIMEType: "text/plain", Text: "This is an embedded resource content."}}
	}
	for name, content := range map[string][]mcp.Content{
		"test_image_content":          {image},
		"test_audio_content":          {audio},
		"test_embedded_resource":      {resource("test://embedded-resource")},
		"test_multiple_content_types": {text("Several:"), image, resource("test://mixed")},
	} {
		addFixture(server, name, noArguments, func(context.Context, *mcp.CallToolRequest) (
			[]mcp.Content, error) {
			return content, nil
		})
	}
	addTalking(server)
	addFixture(server, "json_schema_2020_12_tool", `{"type":"object",
		"$schema":"https://json-schema.org/draft/2020-12/schema","$defs":{"address":{
		"type":"object","properties":{"street":{"type":"string"},"city":{"type":"string"}}}},
		"properties":{"name":{"type":"string"},"address":{"$ref":"#/$defs/address"}},
		"additionalProperties":false}`, func(context.Context, *mcp.CallToolRequest) (
		[]mcp.Content, error) {
		return []mcp.Content{text("called")}, nil
	})
	addReading(server)
	addLessons(server, map[string][]mcp.Content{
		"test_simple_prompt":                 {text("This is a simple prompt for testing.")},
		"test_prompt_with_arguments":         {text("Prompt with {arg1} and {arg2}")},
		"test_prompt_with_embedded_resource": {resource("test://example-resource")},
		"test_prompt_with_image":             {image},
	})
}

const noArguments = `{"type":"object"}`

func addFixture(server *mcp.Server, name, schema string, answer func(context.Context,
	*mcp.CallToolRequest) ([]mcp.Content, error)) {
	server.AddTool(&mcp.Tool{Name: name, Description: "A fixture",
		InputSchema: json.RawMessage(schema)}, func(ctx context.Context,
		request *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		content, err := answer(ctx, request)
		if err != nil {
			return nil, err
		}
		return &mcp.CallToolResult{Content: content}, nil
	})
}

// addTalking adds tools that talk to the client during a call.
func addTalking(server *mcp.Server) {
	text := func(format string, values ...any) []mcp.Content {
		return []mcp.Content{&mcp.TextContent{Text: fmt.Sprintf(format, values...)}}
	}
	addFixture(server, "test_tool_with_logging", noArguments, func(ctx context.Context,
		request *mcp.CallToolRequest) ([]mcp.Content, error) {
		for _, what := range []string{"started", "processing data", "completed"} {
			//nolint:staticcheck // the suite asks for it still
			if err := request.Session.Log(ctx, &mcp.LoggingMessageParams{Level: "info",
				Data: "Tool " + what}); err != nil {
				return nil, err
			}
		}
		return text("logged"), nil
	})
	addFixture(server, "test_sampling", `{"type":"object","properties":{"prompt":{
		"type":"string"}}}`, func(ctx context.Context, request *mcp.CallToolRequest) (
		[]mcp.Content, error) {
		//nolint:staticcheck // the suite asks for it still
		result, err := request.Session.CreateMessage(ctx, &mcp.CreateMessageParams{MaxTokens: 100,
			Messages: []*mcp.SamplingMessage{{Role: "user", //nolint:staticcheck // as above
				Content: &mcp.TextContent{Text: "Test prompt"}}}})
		if err != nil {
			return nil, err
		}
		return text("LLM response: %v", result.Content), nil
	})
	addFixture(server, "test_reconnection", noArguments, func(_ context.Context,
		request *mcp.CallToolRequest) ([]mcp.Content, error) {
		request.Extra.CloseSSEStream(mcp.CloseSSEStreamArgs{RetryAfter: 10 * time.Millisecond})
		return text("reconnected"), nil
	})
	for name, schema := range map[string]string{
		"test_elicitation_sep1034_defaults": `{"type":"object","properties":{
			"name":{"type":"string","default":"John Doe"},"age":{"type":"integer","default":30},
			"score":{"type":"number","default":95.5},
			"status":{"type":"string","enum":["active","inactive","pending"],"default":"active"},
			"verified":{"type":"boolean","default":true}}}`,
		"test_elicitation_sep1330_enums": `{"type":"object","properties":{
			"untitledSingle":{"type":"string","enum":["option1","option2","option3"]},
			"titledSingle":{"type":"string","oneOf":[{"const":"value1","title":"First"},
				{"const":"value2","title":"Second"}]},
			"legacyEnum":{"type":"string","enum":["opt1","opt2"],"enumNames":["One","Two"]},
			"untitledMulti":{"type":"array","items":{"type":"string",
				"enum":["option1","option2"]}},
			"titledMulti":{"type":"array","items":{"anyOf":[{"const":"value1","title":"First"},
				{"const":"value2","title":"Second"}]}}}}`,
	} {
		addFixture(server, name, noArguments, func(ctx context.Context,
			request *mcp.CallToolRequest) ([]mcp.Content, error) {
			result, err := request.Session.Elicit(ctx, &mcp.ElicitParams{Message: "Please",
				RequestedSchema: json.RawMessage(schema)})
			if err != nil {
				return nil, err
			}
			return text("Elicitation completed: action=%s", result.Action), nil
		})
	}
}

// addReading adds resources.
func addReading(server *mcp.Server) {
	read := func(_ context.Context, request *mcp.ReadResourceRequest) (*mcp.ReadResourceResult,
		error) {
		made := &mcp.ResourceContents{URI: request.Params.URI, MIMEType: "text/plain",
			Text: "This is the content of the static text resource."}
		switch {
		case strings.HasSuffix(made.URI, "binary"):
			made.MIMEType, made.Text, made.Blob = "image/png", "", []byte(tinyPNG)
		case strings.Contains(made.URI, "template"):
			id := strings.Split(made.URI, "/")[3]
			made.MIMEType, made.Text = "application/json", fmt.Sprintf(`{"id":%q,"data":%q}`, id, id)
		}
		return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{made}}, nil
	}
	for _, name := range []string{"static-text", "static-binary", "watched-resource"} {
		server.AddResource(&mcp.Resource{Name: name, URI: "test://" + name}, read)
	}
	server.AddResourceTemplate(&mcp.ResourceTemplate{Name: "template",
		URITemplate: "test://template/{id}/data"}, read)
}

// addLessons adds prompts with the arguments that the suite passes.
func addLessons(server *mcp.Server, all map[string][]mcp.Content) {
	arguments := map[string][]string{"test_prompt_with_arguments": {"arg1", "arg2"},
		"test_prompt_with_embedded_resource": {"resourceUri"}}
	for name, content := range all {
		prompt := &mcp.Prompt{Name: name, Description: "A fixture"}
		for _, argument := range arguments[name] {
			prompt.Arguments = append(prompt.Arguments, &mcp.PromptArgument{Name: argument,
				Description: "A text", Required: true})
		}
		server.AddPrompt(prompt, func(_ context.Context, request *mcp.GetPromptRequest) (
			*mcp.GetPromptResult, error) {
			result := &mcp.GetPromptResult{}
			for _, argument := range prompt.Arguments {
				if request.Params.Arguments[argument.Name] == "" {
					return nil, errors.New("an argument is missing")
				}
			}
			for _, one := range content {
				if said, is := one.(*mcp.TextContent); is {
					filled := said.Text
					for name, value := range request.Params.Arguments {
						filled = strings.ReplaceAll(filled, "{"+name+"}", value)
					}
					one = &mcp.TextContent{Text: filled}
				}
				result.Messages = append(result.Messages, &mcp.PromptMessage{Role: "user",
					Content: one})
			}
			return result, nil
		})
	}
}

// fixtureOptions are the capabilities that the suite requires beyond ours.
func fixtureOptions(o *mcp.ServerOptions) {
	//nolint:staticcheck // the suite asks for it still
	o.Capabilities.Logging = &mcp.LoggingCapabilities{}
	o.Capabilities.Completions = &mcp.CompletionCapabilities{}
	o.Capabilities.Resources.Subscribe = true
	o.SubscribeHandler = func(context.Context, *mcp.SubscribeRequest) error { return nil }
	o.UnsubscribeHandler = func(context.Context, *mcp.UnsubscribeRequest) error { return nil }
	o.CompletionHandler = func(context.Context, *mcp.CompleteRequest) (*mcp.CompleteResult, error) {
		return &mcp.CompleteResult{
			Completion: mcp.CompletionResultDetails{Values: []string{}}}, nil
	}
}
