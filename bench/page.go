package main

import (
	"shoal.dev/shoal/bench/page"
	"shoal.dev/shoal/pkg/model"
	"shoal.dev/shoal/testkit/synthweb"
)

// Short names for package page, which has the page that every contender reads.

const hosts = page.Hosts

var productPage = page.HTML()

func fields(absent bool) []model.Field { return page.Fields(absent) }

func webConfig(addresses int) synthweb.Config { return page.Web(addresses) }

func expectedRows(web *synthweb.Web, addresses []string) (string, error) {
	return page.Rows(web, addresses)
}

func fingerprint(rows [][]byte) (string, error) { return page.Fingerprint(rows) }
