package extract_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"shoal.dev/shoal/pkg/extract"
	"shoal.dev/shoal/pkg/fault"
)

// TestFailures: which error a page gets when its extraction fails.
func TestFailures(t *testing.T) {
	for _, c := range []struct {
		err    error
		code   fault.Code
		reason string
	}{
		{fault.New(fault.PageNotHTML, "It is a picture."), fault.PageNotHTML, "It is a picture."},
		{fmt.Errorf("row 3: %w", fault.New(fault.PageTooLarge, "Too large.")), fault.PageTooLarge,
			"Too large."},
		{fault.Wrap(fault.PageUnparsable, errors.New("secret"), ""), fault.PageUnparsable, ""},
		{fault.New(fault.InvalidRequest, "A code of the API."), fault.PageUnparsable,
			"A code of the API."},
		{errors.New("not coded"), fault.PageUnparsable, ""},
		{fault.New(fault.PageTimeout, "%s", strings.Repeat("ä", extract.MaxReason)),
			fault.PageTimeout, strings.Repeat("ä", 198) + "…"},
	} {
		if got := extract.CodeOf(c.err); got != c.code {
			t.Errorf("%v becomes %s, want %s", c.err, got, c.code)
		}
		reason := extract.ReasonOf(c.err)
		if reason != c.reason || len(reason) > extract.MaxReason {
			t.Errorf("%v gives the reason %q, want %q", c.err, reason, c.reason)
		}
	}
}
