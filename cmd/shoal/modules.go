package main

import (
	"context"
	"errors"
)

// runServe runs the roles of one process until ctx ends, and then stops them in order; nil after a clean stop.
func runServe(context.Context, ServeConfig) error {
	return errors.New("serve: the roles are not wired yet")
}

// localToken asks the local issuer of a data directory for a sign-in token that is good for an hour.
func localToken(context.Context, string, tokenRequest) (string, error) {
	return "", errors.New("token: the local issuer is not wired yet")
}
