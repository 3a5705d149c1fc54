// Package e2e runs the product whole and proves its runs exact with an independent recount. The
// real binary runs as a child on embedded defaults, killed at named points and started again. All
// roles run in the test's own process over a log that loses records. It owns no part of the
// product.
package e2e
