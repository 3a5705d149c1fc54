// Package forbidden owns the targets that an attacker would make the service request. It has
// addresses that must not be reached, and spellings of them that some parser accepts. It also has
// names that resolve to them, now or later. Traps record every attempted connection. It belongs in
// its own network (netns.Alone), where the addresses are the test's. It owns no client and no
// guard.
package forbidden
