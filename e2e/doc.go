// Package e2e runs the whole product and proves its runs exact with an independent recount. The
// real binary runs as a child on embedded defaults, and is killed at named points and restarted.
// All roles also run in the test's own process, over a log that loses records. It owns no part of
// the product.
package e2e
