// Package hostile owns what sites send that mean harm, or are broken beyond reason. It has origins
// that hold a connection to their own rules, and pages that cost whoever reads them as much as they
// can. What a client, a browser or an extraction must make of them is their tests' to say.
package hostile
