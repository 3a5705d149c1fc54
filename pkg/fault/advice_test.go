package fault_test

import (
	"strings"
	"testing"

	"shoal.dev/shoal/pkg/fault"
)

// TestEveryPageCodeHasAdvice: link errors have advice; API errors have it in their details.
func TestEveryPageCodeHasAdvice(t *testing.T) {
	for code, entry := range fault.Catalog() {
		advice := fault.Advice(code, 0)
		if (entry.Status == 0) != (advice != "") {
			t.Errorf("%s has the advice %q", code, advice)
		}
		if advice != "" && !strings.HasSuffix(advice, ".") {
			t.Errorf("%s: %q is no sentence", code, advice)
		}
	}
}

// TestAdviceIsOfTheStatus: a page that is gone needs something else than a site that is broken.
func TestAdviceIsOfTheStatus(t *testing.T) {
	for status, want := range map[int]string{404: "gone", 410: "gone", 401: "fewer requests",
		403: "fewer requests", 429: "fewer requests", 500: "later", 503: "later", 599: "later",
		400: "Open the address", 302: "Open the address", 0: "Open the address"} {
		if said := fault.Advice(fault.PageStatus, status); !strings.Contains(said, want) {
			t.Errorf("%d: %q has no %q", status, said, want)
		}
	}
	if said := fault.Advice(fault.PageTimeout, 404); said != fault.Advice(fault.PageTimeout, 0) {
		t.Errorf("a timeout has the advice of a status: %q", said)
	}
}
