package prelaunch

import (
	"net/url"
	"regexp"
	"slices"
	"strings"

	"shoal.dev/shoal/pkg/curl"
	"shoal.dev/shoal/pkg/egress"
)

// Names of the values that FindBuild answers.
const (
	BuildID      = "buildId"
	DeploymentID = "deploymentId"
)

// buildID is what can be a build's or a deployment's id.
var buildID = regexp.MustCompile(`^[A-Za-z0-9._~-]{1,200}$`)

// dataPath is how a framework's data files begin: the segment behind it is the id of the site's
// build, which changes with each release.
var dataPath = regexp.MustCompile(`^(https?://[^/?#]+)((?:/[^/?#]+)*?/_next/data/)([^/?#]+)(/[^?#]*)`)

// BuildOf is the build id in an address, and the host root, where the newest one is found. It is
// false for an address that has none.
func BuildOf(address string) (id, root string, ok bool) {
	match := dataPath.FindStringSubmatch(address)
	if match == nil {
		return "", "", false
	}
	return match[3], match[1] + "/", true
}

// FindBuild reads a site's newest build id from its embedded framework data. It also reads its
// deployment id, where there is one, from the meta element that names it.
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

// WithBuild is a request for the address with the values of FindBuild in the place of older ones.
// The build id stands in the path. Where the request has a deployment id, that stands in the query
// (dpl) or the header (x-deployment-id).
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
