package contacts

import "slices"

// Judgement compares an answer with what a page publishes. It counts addresses.
type Judgement struct {
	Right, Wrong, Missed int
	// Alarm says that a protected address was reported, though the page has none.
	Alarm bool
	// Unnoticed says that the page has only a protected address, and it was not reported.
	Unnoticed bool
}

// Judge compares the answered addresses, and whether the answer reported an address that cannot be
// extracted.
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
