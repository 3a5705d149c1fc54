// Package hostile owns malicious or badly broken content from sites. It has origins that follow
// their own rules on a connection, and pages that are as expensive to read as possible. Its users'
// tests say what a client, a browser or an extraction must make of them.
package hostile
