package fault_test

import (
	"strings"
	"testing"

	"shoal.dev/shoal/pkg/fault"
)

// TestEveryPageCodeHasAdvice: link errors have advice; API errors have it in their details.
func TestEveryPageCodeHasAdvice(t *testing.T) {
	for code, entry := range fault.Catalog() {
		advice := fault.Advice(code)
		if (entry.Status == 0) != (advice != "") {
			t.Errorf("%s has the advice %q", code, advice)
		}
		if advice != "" && !strings.HasSuffix(advice, ".") {
			t.Errorf("%s: %q is no sentence", code, advice)
		}
	}
}
