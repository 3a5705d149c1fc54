// Package forbidden owns what an attacker would have the service ask for. It has addresses that
// must not be reached, and the spellings of them that some parser takes. It also has names that
// resolve to them now or the next time. Traps see every connection that was tried. It belongs into
// a network of its own (netns.Alone), where the addresses are the test's. It owns no client and no
// guard.
package forbidden
