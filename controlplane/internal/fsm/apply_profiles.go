package fsm

import (
	"slices"

	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/fault"
)

// Bounds of the info in a profile.
const (
	maxInfo      = 100      // keys
	maxInfoBytes = 64 << 10 // of all keys and values
)

func signUp(tx *state.Tx, p command.SignUpPayload) (state.Profile, error) {
	if known := tx.Profile(p.Customer); known != nil && known.Email != "" {
		return state.Profile{}, fault.New(fault.CustomerExists, "the customer has signed up before")
	}
	if tx.ProfileByEmail(p.Email) != nil {
		return state.Profile{}, fault.Invalid(fault.EmailTaken, "email",
			"another customer has this address")
	}
	if opens(p) { // no refusals from here on
		open := command.OpenCustomerPayload{Customer: p.Customer, Entry: p.Entry}
		if _, err := openCustomer(tx, open); err != nil {
			return state.Profile{}, err
		}
	}
	profile, err := changedProfile(tx, p.Customer)
	if err != nil {
		return state.Profile{}, err
	}
	profile.Email = p.Email
	return putProfile(tx, name(tx, profile, p.Firstname, p.Lastname)), nil
}

// opens reports whether a command makes its own customer if there is none.
func opens(p command.Payload) bool {
	entered, isSignUp := p.(command.SignUpPayload)
	return isSignUp && !entered.Entry.IsZero()
}

func renameCustomer(tx *state.Tx, p command.RenameCustomerPayload) (state.Profile, error) {
	profile, err := changedProfile(tx, p.Customer)
	if err != nil {
		return state.Profile{}, err
	}
	return putProfile(tx, name(tx, profile, p.Firstname, p.Lastname)), nil
}

func changeInfo(tx *state.Tx, p command.ChangeInfoPayload) (state.Profile, error) {
	profile, err := changedProfile(tx, p.Customer)
	if err != nil {
		return state.Profile{}, err
	}
	before := len(profile.Info)
	for _, key := range p.Remove {
		if at, found := profile.FindInfo(key); found {
			profile.Info = slices.Delete(profile.Info, at, at+1)
		}
	}
	if len(p.Set) == 0 && len(profile.Info) == before {
		return *profile, nil
	}
	for _, info := range p.Set {
		at, found := profile.FindInfo(info.Key)
		if !found {
			profile.Info = slices.Insert(profile.Info, at, info)
		}
		profile.Info[at] = info
	}
	if err := checkInfo(profile.Info); len(p.Set) > 0 && err != nil {
		return state.Profile{}, err
	}
	return putProfile(tx, profile), nil
}

func checkInfo(info []state.Info) error {
	bytes := 0
	for _, i := range info {
		bytes += len(i.Key) + len(i.Value)
	}
	if len(info) > maxInfo {
		return fault.New(fault.LimitReached, "a customer keeps at most %d keys", maxInfo)
	}
	if bytes > maxInfoBytes {
		return fault.New(fault.LimitReached,
			"the keys and values of a customer have at most %d bytes in all", maxInfoBytes)
	}
	return nil
}

// changedProfile returns a copy of a customer's profile, to be changed.
func changedProfile(tx *state.Tx, customer string) (*state.Profile, error) {
	if known := tx.Profile(customer); known != nil {
		return known.Clone(), nil
	}
	if tx.Customer(customer) == nil {
		return nil, fault.New(fault.Unauthorized, "the customer does not exist")
	}
	return &state.Profile{Customer: customer}, nil
}

// name sets the name, and the time of the first agreement.
func name(tx *state.Tx, profile *state.Profile, first, last string) *state.Profile {
	profile.Firstname, profile.Lastname = first, last
	if profile.AgreedAt == 0 {
		profile.AgreedAt = tx.Now
	}
	return profile
}

func putProfile(tx *state.Tx, profile *state.Profile) state.Profile {
	profile.UpdatedAt = tx.Now
	tx.PutProfile(profile)
	return *profile
}
