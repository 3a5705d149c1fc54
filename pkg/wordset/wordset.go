// Package wordset is how readers of pages write down sets of words: as one text that people can
// read and extend. It owns no words, and ignores questions of case and spelling.
package wordset

import "strings"

// Of returns the set of the words in list, which are separated by white space. Words are compared
// bytewise: look them up as list spells them.
func Of(list string) map[string]bool {
	set := map[string]bool{}
	for word := range strings.FieldsSeq(list) {
		set[word] = true
	}
	return set
}
