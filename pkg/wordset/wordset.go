// Package wordset owns how the readers of pages write down sets of words: as one text that people
// can read and extend. It owns no words, and neither case nor spelling.
package wordset

import "strings"

// Of is the set of the words in list, which white space sets apart. Words are told apart by their
// bytes: who looks one up writes it as list does.
func Of(list string) map[string]bool {
	set := map[string]bool{}
	for word := range strings.FieldsSeq(list) {
		set[word] = true
	}
	return set
}
