package fsm

import (
	"fmt"
	"strings"
	"testing"

	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
)

func TestCustomersSignUpOnce(t *testing.T) {
	b := newBench(t)
	b.refused(command.SignUpPayload{Customer: "nobody", Email: "n@x.test"}, fault.Unauthorized)
	b.now = 10
	b.must(command.RenameCustomerPayload{Customer: "a", Firstname: "A", Lastname: "B"})
	b.now = 20
	made := b.must(command.SignUpPayload{Customer: "a", Email: "Ann@x.test", Firstname: "Ann",
		Lastname: "Smith"}).(state.Profile)
	if made.Email != "Ann@x.test" || made.Firstname != "Ann" || made.AgreedAt != 10 ||
		made.UpdatedAt != 20 {
		t.Errorf("signed up: %+v", made)
	}
	b.refused(command.SignUpPayload{Customer: "a", Email: "other@x.test"}, fault.CustomerExists)
	b.refused(command.SignUpPayload{Customer: "b", Email: "aNN@X.test"}, fault.EmailTaken)
	if b.view().Profile("b") != nil {
		t.Error("a refused customer has a profile")
	}
	renamed := b.must(command.RenameCustomerPayload{Customer: "a", Firstname: "Anna",
		Lastname: "Smith"}).(state.Profile)
	if renamed.Email != "Ann@x.test" || renamed.AgreedAt != 10 || renamed.Firstname != "Anna" {
		t.Errorf("renamed: %+v", renamed)
	}
	if found := b.view().ProfileByEmail("ANN@x.TEST"); found == nil || found.Customer != "a" {
		t.Errorf("the directory finds %+v", found)
	}
}

// Signing up makes a missing customer, or does nothing.
func TestSigningUpOpensTheCustomer(t *testing.T) {
	b := newBench(t)
	b.must(command.SignUpPayload{Customer: "a", Email: "ann@x.test"})
	entered := command.SignUpPayload{Customer: "new", Email: "ANN@x.test", Entry: ids.ID{9}}
	b.refused(entered, fault.EmailTaken)
	if b.view().Customer("new") != nil || b.view().Wallet("new") != nil {
		t.Error("a refused stranger is a customer")
	}
	entered.Email = "new@x.test"
	b.must(entered)
	if b.view().Customer("new") == nil || b.view().Profile("new").Email != "new@x.test" ||
		b.view().Entry(ids.ID{9}) == nil {
		t.Error("the customer has no record, profile or free grant")
	}
	again := command.SignUpPayload{Customer: "new", Email: "other@x.test", Entry: ids.ID{10}}
	b.refused(again, fault.CustomerExists)
	if b.view().Entry(ids.ID{10}) != nil {
		t.Error("a second grant")
	}
	// an existing customer is not opened again
	b.must(command.SignUpPayload{Customer: "b", Email: "bob@x.test", Entry: ids.ID{11}})
	if b.view().Entry(ids.ID{11}) != nil {
		t.Error("a grant for who had one")
	}
}

func TestInfoIsBounded(t *testing.T) {
	b := newBench(t)
	set := func(n, valueBytes int) command.ChangeInfoPayload {
		change := command.ChangeInfoPayload{Customer: "a"}
		for i := range n {
			change.Set = append(change.Set, state.Info{Key: fmt.Sprintf("%03d", i),
				Value: strings.Repeat("v", valueBytes)})
		}
		return change
	}
	held := func() int {
		if p := b.view().Profile("a"); p != nil {
			return len(p.Info)
		}
		return 0
	}
	b.must(command.ChangeInfoPayload{Customer: "a", Remove: []string{"000"}})
	if b.view().Profile("a") != nil {
		t.Error("nothing was changed, and there is a profile")
	}
	b.refused(set(maxInfo+1, 1), fault.LimitReached)
	if held() != 0 {
		t.Errorf("a refused change left %d keys", held())
	}
	b.must(set(maxInfo, 1))
	b.refused(command.ChangeInfoPayload{Customer: "a", Set: []state.Info{{Key: "one more"}}},
		fault.LimitReached)
	b.must(command.ChangeInfoPayload{Customer: "a", Remove: []string{"000", "not there"},
		Set: []state.Info{{Key: "one more"}}})
	if held() != maxInfo {
		t.Errorf("%d keys", held())
	}
	b.must(command.ChangeInfoPayload{Customer: "a", Remove: func() (all []string) {
		for _, info := range b.view().Profile("a").Info {
			all = append(all, info.Key)
		}
		return all
	}()})
	if held() != 0 {
		t.Errorf("%d keys are left", held())
	}
	b.must(set(16, maxInfoBytes/16-3))
	b.refused(command.ChangeInfoPayload{Customer: "a", Set: []state.Info{{Key: "x"}}},
		fault.LimitReached)
}
