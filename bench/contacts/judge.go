package contacts

import "slices"

// Judgement is how an answer compares with what a page publishes. It counts addresses.
type Judgement struct {
	Right, Wrong, Missed int
	// Alarm says that an address was taken for protected where the page has none behind one.
	Alarm bool
	// Unnoticed says that the page has no address but a protected one, and nobody was told.
	Unnoticed bool
}

// Judge compares the addresses that were answered, and whether the answer was that there is one
// that cannot be extracted.
func (a *Answer) Judge(addresses []string, protected bool) Judgement {
	var j Judgement
	found := map[string]bool{}
	for _, address := range addresses {
		hash := Hash(address)
		found[hash] = true
		switch {
		case slices.Contains(a.Own, hash):
			j.Right++
		case !slices.Contains(a.May, hash):
			j.Wrong++
		}
	}
	for _, hash := range a.Own {
		if !found[hash] {
			j.Missed++
		}
	}
	j.Alarm = protected && !a.Protected
	j.Unnoticed = !protected && a.Protected && len(a.Own) == 0 && len(addresses) == 0
	return j
}
