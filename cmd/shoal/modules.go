package main

import (
	"context"
	"errors"
)

// runServe is service.run.
func runServe(context.Context, ServeConfig) error {
	return errors.New("serve: the roles are not wired yet")
}

// localToken is service.token.
func localToken(context.Context, string, tokenRequest) (string, error) {
	return "", errors.New("token: the local issuer is not wired yet")
}
