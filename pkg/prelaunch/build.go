package prelaunch

import (
	"net/url"
	"regexp"
	"slices"
	"strings"

	"shoal.dev/shoal/pkg/curl"
	"shoal.dev/shoal/pkg/egress"
)

// Names of the values that FindBuild returns.
const (
	BuildID      = "buildId"
	DeploymentID = "deploymentId"
)

// buildID matches the id of a build or a deployment.
var buildID = regexp.MustCompile(`^[A-Za-z0-9._~-]{1,200}$`)

// dataPath matches addresses of a framework's data files. The segment after the path is the id of
// the site's build, which changes with each release.
var dataPath = regexp.MustCompile(`^(https?://[^/?#]+)((?:/[^/?#]+)*?/_next/data/)([^/?#]+)(/[^?#]*)`)

// BuildOf returns the build id in an address, and the host's root, where the newest id is found. It
// is false for an address without one.
func BuildOf(address string) (id, root string, ok bool) {
	match := dataPath.FindStringSubmatch(address)
	if match == nil {
		return "", "", false
	}
	return match[3], match[1] + "/", true
}

// FindBuild reads a site's newest build id from its embedded framework data. It also reads its
// deployment id, if there is one, from its meta element.
func FindBuild(page []byte) (map[string]string, error) {
	d := &document{body: page}
	id, err := d.pointed("/buildId")
	if err != nil {
		return nil, err
	}
	if !buildID.MatchString(id) {
		return nil, errNoBuild
	}
	values := map[string]string{BuildID: id}
	deployment, found := d.meta(func(name string) bool {
		return strings.HasSuffix(strings.ToLower(name), "deployment-id")
	})
	if found && buildID.MatchString(deployment) {
		values[DeploymentID] = deployment
	}
	return values, nil
}

// WithBuild returns a request for the address in which the values of FindBuild replace older ones.
// The build id is in the path. A deployment id, if the request has one, is in the query (dpl) or
// the header (x-deployment-id).
func WithBuild(r *curl.Request, address string, values map[string]string) (*curl.Request, string) {
	match := dataPath.FindStringSubmatchIndex(address)
	if match == nil || values[BuildID] == "" {
		return r, address
	}
	address = address[:match[6]] + values[BuildID] + address[match[7]:]
	deployment := values[DeploymentID]
	if deployment == "" {
		return r, address
	}
	base, query, asked := strings.Cut(address, "?")
	if asked {
		parts := strings.Split(query, "&")
		for i, part := range parts {
			if name, _, _ := strings.Cut(part, "="); name == "dpl" {
				parts[i] = "dpl=" + url.QueryEscape(deployment)
			}
		}
		address = base + "?" + strings.Join(parts, "&")
	}
	renewed := *r
	renewed.Header = slices.Clone(r.Header)
	for i, field := range renewed.Header {
		if strings.EqualFold(field.Name, "x-deployment-id") {
			renewed.Header[i] = egress.Field{Name: field.Name, Value: deployment}
		}
	}
	return &renewed, address
}
