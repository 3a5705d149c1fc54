package signin

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"shoal.dev/shoal/apiserver/internal/auth"
	"shoal.dev/shoal/apiserver/internal/grants"
	"shoal.dev/shoal/apiserver/internal/limits"
	"shoal.dev/shoal/apiserver/internal/operation"
	"shoal.dev/shoal/pkg/fault"
)

// programs is the group of the operations on grants.
const programs = "Programs"

// OAuth answers use the names and errors of their standards, which client libraries know. Only
// refusals by the chain of checks are Problems.
var inJSON = []string{"application/json"}

// answerJSON answers a program.
func answerJSON(status int, body any) (operation.Raw, error) {
	data, err := json.Marshal(body)
	return operation.Raw{ContentType: "application/json", Body: data, Status: status,
		Secret: true}, err
}

// answerRefusal answers with a refusal. It returns other errors to the chain.
func answerRefusal(err error) (operation.Raw, error) {
	refusal := (*grants.Refusal)(nil)
	if !errors.As(err, &refusal) {
		return operation.Raw{}, err
	}
	status := http.StatusBadRequest
	if refusal.Code == "invalid_client" {
		status = http.StatusUnauthorized
	}
	return answerJSON(status, map[string]string{"error": refusal.Code,
		"error_description": refusal.Detail})
}

// metadata is GET /.well-known/oauth-authorization-server.
func (r Resource) metadata() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID: "svc_oauth_metadata", Group: programs,
		Routes:  operation.Routes("GET /.well-known/oauth-authorization-server"),
		Summary: "Returns where and how programs request grants", Access: auth.Public,
		Description: "The metadata of RFC 8414. Pages of any site may read it.",
		Rate:        limits.Anonymous, Media: inJSON, Lenient: true, Anywhere: true,
	}, func(_ context.Context, from *operation.Caller, _ *struct{}) (operation.Raw, error) {
		own, err := base(from)
		if err != nil {
			return operation.Raw{}, err
		}
		return answerJSON(0, map[string]any{
			"issuer":                                         own,
			"authorization_endpoint":                         own + authorizePath,
			"token_endpoint":                                 own + "/oauth/token",
			"registration_endpoint":                          own + "/oauth/register",
			"revocation_endpoint":                            own + "/oauth/revoke",
			"scopes_supported":                               grants.Scopes(),
			"response_types_supported":                       []string{"code"},
			"response_modes_supported":                       []string{"query"},
			"grant_types_supported":                          grantTypes,
			"code_challenge_methods_supported":               []string{"S256"},
			"token_endpoint_auth_methods_supported":          []string{"none"},
			"revocation_endpoint_auth_methods_supported":     []string{"none"},
			"authorization_response_iss_parameter_supported": true,
		})
	})
}

var grantTypes = []string{"authorization_code", "refresh_token"}

// MetadataPath is where refused programs find the authorization server (RFC 9728).
const MetadataPath = "/.well-known/oauth-protected-resource"

// resourceMetadata is GET /.well-known/oauth-protected-resource.
func (r Resource) resourceMetadata() *operation.Operation {
	return r.resource("svc_oauth_resource", "",
		"Returns who grants access to this service: itself")
}

// agentMetadata is GET /.well-known/oauth-protected-resource/mcp.
func (r Resource) agentMetadata() *operation.Operation {
	return r.resource("svc_oauth_agent_resource", agentPath,
		"Returns who grants access to the agent gateway of this service")
}

// agentPath is the address of the agent gateway.
const agentPath = "/mcp"

// resource describes who grants access to the resources below a path.
func (r Resource) resource(id, path, summary string) *operation.Operation {
	return operation.Define(operation.Declaration{
		ID: id, Group: programs, Routes: operation.Routes("GET " + MetadataPath + path),
		Summary: summary, Access: auth.Public,
		Description: "The metadata of RFC 9728. Pages of any site may read it.",
		Rate:        limits.Anonymous, Media: inJSON, Lenient: true, Anywhere: true,
	}, func(_ context.Context, from *operation.Caller, _ *struct{}) (operation.Raw, error) {
		own, err := base(from)
		if err != nil {
			return operation.Raw{}, err
		}
		return answerJSON(0, map[string]any{"resource": own + path,
			"authorization_servers": []string{own}, "scopes_supported": grants.Scopes(),
			"bearer_methods_supported": []string{"header"}})
	})
}

type registerRequest struct {
	Body []byte `body:"raw" limit:"16384"`
}

// register is POST /oauth/register.
func (r Resource) register() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID: "svc_register_program", Routes: operation.Routes("POST /oauth/register"),
		Group: programs, Summary: "Registers a program, and returns its client_id",
		Description: "Dynamic registration of RFC 7591. redirect_uris has 1 to 5 addresses, " +
			"with https, or http on loopback. client_name has at most 64 characters. All " +
			"programs are public clients: they have no secret. The service stores nothing " +
			"about them; a client_id can request grants for 400 days. Other members are " +
			"ignored.",
		Access: auth.Public, Rate: limits.Anonymous, Media: inJSON, Status: http.StatusCreated,
		Cookieless: true,
	}, func(_ context.Context, _ *operation.Caller, in *registerRequest) (operation.Raw, error) {
		name, redirects, err := readRegistration(in.Body)
		if err != nil {
			return answerRefusal(&grants.Refusal{Code: "invalid_client_metadata",
				Detail: "the body is a JSON object without a member twice, client_name a text, " +
					"redirect_uris a list"})
		}
		id, made, err := r.Grants.Register(name, redirects)
		if err != nil {
			return answerRefusal(err)
		}
		return answerJSON(0, map[string]any{"client_id": id,
			"client_id_issued_at": made.Registered, "client_name": made.Name,
			"redirect_uris": made.Redirects, "token_endpoint_auth_method": "none",
			"grant_types": grantTypes, "response_types": []string{"code"}})
	})
}

// readRegistration reads a program's registration. Names of members are case-sensitive.
func readRegistration(body []byte) (name string, redirects []string, err error) {
	members, err := operation.ReadArguments(body)
	if err != nil {
		return "", nil, err
	}
	for member, into := range map[string]any{"client_name": &name, "redirect_uris": &redirects} {
		if value, given := members[member]; given {
			err = errors.Join(err, json.Unmarshal(value, into))
		}
	}
	return name, redirects, err
}

type tokenRequest struct {
	Body struct {
		GrantType string `json:"grant_type" max:"64" doc:"authorization_code or refresh_token"`
		ClientID  string `json:"client_id" max:"4096"`
		Code      string `json:"code" max:"1024" doc:"For authorization_code"`
		Redirect  string `json:"redirect_uri" max:"1024" doc:"For authorization_code: the redirect_uri with which the code was requested"`
		Verifier  string `json:"code_verifier" max:"1024" doc:"For authorization_code: the verifier of the challenge"`
		Refresh   string `json:"refresh_token" max:"1024" doc:"For refresh_token"`
		Scope     string `json:"scope" max:"256" doc:"For refresh_token: the granted scope, or omitted"`
		Resource  string `json:"resource" max:"1024" doc:"The resource for which the code was requested, or omitted"`
	} `body:"form" limit:"16384"`
}

// token is POST /oauth/token.
func (r Resource) token() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID: "svc_token", Routes: operation.Routes("POST /oauth/token"), Group: programs,
		Summary: "Issues tokens for a code or a refresh token",
		Description: "The access token is valid for 15 minutes, and works like an API key of " +
			"the granted scope. A refresh token is valid once, and its answer has a new one. " +
			"Reusing an old refresh token ends the grant. For 30 seconds the previous refresh " +
			"token gets the same answer again, in case the first answer was lost. A grant ends " +
			"after 30 days without a refresh. Refusals are 400 or 401 with error and " +
			"error_description, as in RFC 6749.",
		Access: auth.Public, Rate: limits.Anonymous, Media: inJSON, Cookieless: true,
		Errors: []fault.Code{fault.Unauthorized},
	}, func(ctx context.Context, from *operation.Caller, in *tokenRequest) (operation.Raw,
		error) {
		own, err := base(from)
		if err != nil {
			return operation.Raw{}, err
		}
		var tokens grants.Tokens
		switch b := &in.Body; b.GrantType {
		case "authorization_code":
			tokens, err = r.Grants.Redeem(ctx, grants.Redemption{Program: b.ClientID, Code: b.Code,
				Redirect: b.Redirect, Verifier: b.Verifier, Resource: b.Resource}, own)
		case "refresh_token":
			tokens, err = r.Grants.Refresh(ctx, grants.Renewal{Program: b.ClientID,
				Refresh: b.Refresh, Scope: b.Scope, Resource: b.Resource}, own)
		default:
			err = &grants.Refusal{Code: "unsupported_grant_type",
				Detail: "grant_type is authorization_code or refresh_token"}
		}
		if err != nil {
			return answerRefusal(err)
		}
		return answerJSON(0, map[string]any{"access_token": tokens.Access, "token_type": "Bearer",
			"expires_in": int(tokens.Life.Seconds()), "refresh_token": tokens.Refresh,
			"scope": tokens.Scope})
	})
}

type revokeRequest struct {
	Body struct {
		Token    string `json:"token" max:"1024"`
		ClientID string `json:"client_id" max:"4096"`
	} `body:"form" limit:"16384"`
}

// revoke is POST /oauth/revoke.
func (r Resource) revoke() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID: "svc_revoke_token", Routes: operation.Routes("POST /oauth/revoke"), Group: programs,
		Summary: "Ends the grant that a token belongs to",
		Description: "Revocation as in RFC 7009, by a refresh token or the newest access " +
			"token. A token that is not the program's changes nothing and gets the same answer.",
		Access: auth.Public, Rate: limits.Anonymous, Media: inJSON, Cookieless: true,
	}, func(ctx context.Context, _ *operation.Caller, in *revokeRequest) (operation.Raw, error) {
		if err := r.Grants.Revoke(ctx, in.Body.ClientID, in.Body.Token); err != nil {
			return operation.Raw{}, err
		}
		return answerJSON(0, struct{}{})
	})
}
