package rowstoretest

// Columns are what every engine's schema has for jobs, page records and rows, under these names. A
// new one is a line here and a migration of each engine, whose tests compare. What of a record no
// query looks into is one encoded column more.
func Columns() (job, record, row []string) {
	return []string{"job", "customer", "grp", "scraper", "started", "sealed"},
		[]string{"outcome", "items", "quantity", "price", "hash", "last"},
		[]string{"at", "doc"}
}
