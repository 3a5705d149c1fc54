package state

import "fmt"

// Counts is how many records each table has. It visits all of them.
func (v *View) Counts() map[string]int {
	counts := map[string]int{}
	for _, t := range tables() {
		rows, err := v.txn.Get(t.name, "id_prefix")
		if err != nil {
			panic(fmt.Sprintf("state: count %s: %v", t.name, err))
		}
		n := 0
		for raw := rows.Next(); raw != nil; raw = rows.Next() {
			n++
		}
		counts[t.name] = n
	}
	return counts
}
