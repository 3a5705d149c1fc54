package main

import (
	"regexp"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"shoal.dev/shoal/cmd/shoal/internal/configfile"
	"shoal.dev/shoal/cmd/shoal/internal/terminal"
)

const ownVariables = "SHOAL_"

// ofOthers matches variables that Kubernetes sets beside a service called shoal, and the switches
// of the project's own test suites.
var ofOthers = regexp.MustCompile(`^SHOAL_((.*_)?(SERVICE_(HOST|PORT.*)|PORT(_.*)?)|.*_SUITE|SERVICES)$`)

// tellMisspelt reports environment variables that belong to no flag, and so set nothing.
func tellMisspelt(t *terminal.Terminal, app *kong.Application, environment []string) {
	flags, known := configfile.Flags(app), configfile.Variables(app)
	slices.Sort(environment)
	for _, variable := range environment {
		name, _, _ := strings.Cut(variable, "=")
		key, own := strings.CutPrefix(name, ownVariables)
		if !own || known[name] || ofOthers.MatchString(name) {
			continue
		}
		flag := strings.ToLower(strings.ReplaceAll(key, "_", "-"))
		if near := configfile.Nearest(flag, flags); near != "" && len(flags[near].Envs) > 0 {
			t.Notef("shoal: %s sets nothing: did you mean %s?", name, flags[near].Envs[0])
			continue
		}
		t.Notef("shoal: %s sets nothing: no flag is called --%s", name, flag)
	}
}
