package model_test

import (
	"testing"

	"shoal.dev/shoal/pkg/model"
)

func TestServerKeys(t *testing.T) {
	for key, want := range map[string]bool{"_sourceUrl": true, "_": true, "__": true,
		"": false, "title": false, "a_b": false, " _": false, "＿": false} {
		if model.IsServerKey(key) != want {
			t.Errorf("%q is the server's: %v, want %v", key, !want, want)
		}
	}
}
