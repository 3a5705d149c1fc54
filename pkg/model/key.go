package model

import "strings"

// IsServerKey reports whether a key of a row is the server's own: no page and no file may choose
// one that begins with _.
func IsServerKey(key string) bool { return strings.HasPrefix(key, "_") }
