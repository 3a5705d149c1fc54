// Package admin owns what only an operator may do (decision 32).
package admin

const group = "Administration"
