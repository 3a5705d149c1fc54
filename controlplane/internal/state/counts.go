package state

// Counts returns the number of records in each table.
func (v *View) Counts() map[string]int {
	counts := map[string]int{}
	for _, c := range v.tables {
		counts[c.kind.name] = c.trees[c.kind.id].Len()
	}
	return counts
}
