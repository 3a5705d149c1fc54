package pdp

import (
	"flag"
	"testing"

	"shoal.dev/shoal/pkg/extract/marketplace/internal/shop/shoptest"
)

var update = flag.Bool("update", false, "write the golden files anew")

func TestPages(t *testing.T) { shoptest.Pages(t, Plugin(), *update) }

func FuzzRead(f *testing.F) { shoptest.Fuzz(f, Plugin()) }
