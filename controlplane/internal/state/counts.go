package state

import "fmt"

// Counts is how many records each table has. It visits all of them.
func (v *View) Counts() map[string]int {
	counts := map[string]int{}
	for _, t := range tableList() {
		rows, err := v.txn.Get(t.Name, "id_prefix")
		if err != nil {
			panic(fmt.Sprintf("state: count %s: %v", t.Name, err))
		}
		n := 0
		for raw := rows.Next(); raw != nil; raw = rows.Next() {
			n++
		}
		counts[t.Name] = n
	}
	return counts
}
