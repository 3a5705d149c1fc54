package egress

import (
	"errors"

	"shoal.dev/shoal/pkg/fault"
)

// detailOf returns the sentence for the user in a coded error.
func detailOf(err error) string {
	var coded *fault.Error
	if errors.As(err, &coded) {
		return coded.Detail
	}
	return ""
}
