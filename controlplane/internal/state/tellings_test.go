package state

import (
	"reflect"
	"strings"
	"testing"

	"shoal.dev/shoal/controlplane/internal/codec/codectest"
)

// untellable lists, by reason, the tables that the audit trail passes over, or of whose records it
// tells only the key. Nobody decides what they hold.
var untellable = map[string]string{
	"counts and copies of what other tables hold": "revoked undone recipes contents launches books " +
		"dailies archive schedules grantcodes notices mails imports audit audithead auditfailures",
	"calls, and what prepares or repeats one": "claims results previews tickets",
	"their commands tell of sign-ins":         "sessions",
	"the cluster's own work":                  "cluster shards work workers",
	"the payment provider's":                  "invoices reversals",
}

// untold lists, by reason, the fields of told records that the trail does not tell. A name stands
// for all fields within.
var untold = map[string]string{
	"counted, or follows from other records": `
		customers.Claims customers.ClaimBytes customers.ScraperBytes customers.Made customers.Ran
		customers.Owned customers.ErasedAt groups.Scrapers groups.Setup groups.RowsRemoved scrapers.LastJob
		scrapers.Past scrapers.Filled scrapers.Protection.Run wallets.Free wallets.FreeHeld
		wallets.Sealed wallets.Sequence wallets.Out wallets.ToppedUp wallets.Archived
		wallets.ArchivedSum inboxes.Fold inboxes.Mails deletedRuns.Removed`,
	"says when and how it was used": `
		keys.LastUsedAt keys.LastAddress keys.Trials keys.TrialDay grants.AccessUntil grants.UsedAt
		grants.Trials grants.TrialDay passkeys.Count passkeys.Synced passkeys.UsedAt passkeys.Asked`,
	"a credential or a part of one; another field tells of a new one": `
		keys.Prefix keys.Hash accounts.Password grants.Family grants.Refresh grants.Was
		grants.Access passkeys.Credential passkeys.PublicKey webhooks.Secret webhooks.Former`,
	"identifies a person, or is what one wrote; another field tells when it changed": `
		accounts.Email profiles.Email profiles.Firstname profiles.Lastname profiles.AgreedAt
		profiles.Info letters.Email feedback.Text`,
	"fixed when the record is made, by the program or by what is told": `
		customers.CreatedAt groups.CreatedAt groups.Of groups.Made scrapers.CreatedAt
		scrapers.ListRun scrapers.Tag categories.CreatedAt sites.CreatedAt
		letters.SignUp webhooks.CreatedAt harvests.URL harvests.CreatedAt harvests.Operation
		harvests.Key exports.Key exports.CreatedAt exports.ExpiresAt prices.Rows.Kind`,
	"the actor and the time of the entry": `
		groups.UpdatedAt settings.Revision settings.ChangedAt settings.ChangedBy prices.ChangedAt
		prices.ChangedBy catalogues.By catalogues.Begun`,
	"fixed when the run is launched, by the program or by what is told": `
		jobs.Group jobs.Revision jobs.List jobs.Queued jobs.Tiers jobs.Prices jobs.Entry
		jobs.MaxPages jobs.Charge jobs.Daily jobs.Key jobs.Rest jobs.Given jobs.File jobs.Same`,
	"a run's progress and end": `
		jobs.Reason jobs.Message jobs.Started jobs.Finished jobs.Closed jobs.Success jobs.Errors
		jobs.Items jobs.Pages jobs.Index jobs.Delivered jobs.Charged heldRuns.At heldRuns.Pages
		heldRuns.Items heldRuns.Errors heldRuns.Micros`,
	"nothing that an adjustment has": `
		entries.FreeDelta entries.Source entries.Job entries.Scraper entries.Group entries.Lines`,
	"the books' order": `
		entries.Status entries.CreatedAt entries.SettledAt entries.Sequence entries.Created`,
	"the payment provider's, or about its calls": `
		topups.Payment topups.CreatedAt topups.Expires topups.EndedAt subscriptions.Contract.ID
		subscriptions.Contract.Revision subscriptions.Contract.Created
		subscriptions.Contract.PeriodEnd subscriptions.Contract.ToldAt subscriptions.Contract.Cents
		subscriptions.Leaving subscriptions.Gone subscriptions.Checkout.Session
		subscriptions.Checkout.URL subscriptions.Checkout.Expires subscriptions.Move
		subscriptions.MoveUntil subscriptions.Revision subscriptions.Stale subscriptions.PaidCents`,
	"counts only without a contract, and is told then": `subscriptions.Free`,
	"background work's progress and end": `
		letters.At letters.Tries catalogues.Ended catalogues.Message harvests.Count harvests.EndedAt
		harvests.Wiped harvests.Code harvests.Detail exports.EndedAt exports.Blob exports.Bytes
		exports.Rows exports.Digest exports.Code exports.Detail webhooks.FailingSince webhooks.Next
		webhooks.Deliveries webhooks.Dropped deliveries.Notice deliveries.State deliveries.Due
		deliveries.Tries deliveries.Before deliveries.TriedAt deliveries.Status deliveries.Error`,
	"a node's own": `
		nodes.Boot nodes.Roles nodes.Address nodes.Version nodes.Capacity nodes.JoinedAt nodes.Tiers`,
}

// TestTheTrailTellsEachField changes each field of each table in turn: the audit trail tells it, or
// the lists above say why not. They name nothing that is told.
func TestTheTrailTellsEachField(t *testing.T) {
	passed, silent := names(untellable), names(untold)
	for _, k := range tables() {
		if k.neverTold || k.tell == nil {
			if !lists(passed, k.name) {
				t.Errorf("the trail tells nothing of table %s: say why", k.name)
			}
			continue
		}
		record := tellable(k)
		if k.telling(record).detail == nil {
			t.Errorf("the trail hides the sample of table %s", k.name)
		}
		vary(reflect.ValueOf(record).Elem(), k.name, func(field string, change func()) {
			told, at := k.telling(record), k.key(k.id, record)
			change()
			if k.telling(record) == told && k.key(k.id, record) == at && !lists(silent, field) {
				t.Errorf("a change of %s is not told", field)
			}
		})
	}
	for name, used := range passed {
		if !used {
			t.Errorf("table %s is told, or there is none", name)
		}
	}
	for name, used := range silent {
		if !used {
			t.Errorf("field %s is told, or there is none", name)
		}
	}
}

// names returns the names in a list, all of them unused.
func names(list map[string]string) map[string]bool {
	used := map[string]bool{}
	for _, some := range list {
		for _, name := range strings.Fields(some) {
			used[name] = false
		}
	}
	return used
}

// lists reports whether a list has a name, or one that stands for it, which is used then.
func lists(list map[string]bool, name string) bool {
	for one := range list {
		if name == one || strings.HasPrefix(name, one+".") {
			list[one] = true
			return true
		}
	}
	return false
}

// tellable returns a record of a table of which the trail tells all that it ever tells.
func tellable(k *kind) any {
	record := k.empty()
	codectest.Fill(record)
	switch record := record.(type) {
	case *Entry:
		record.Type = EntryAdjustment
	case *Subscription:
		record.Contract.Standing, record.Contract.Cancel = ContractLive, false
	}
	return record
}

// vary offers a change of each field within a value in turn, with the field's name.
func vary(v reflect.Value, name string, visit func(name string, change func())) {
	kept := reflect.New(v.Type()).Elem()
	kept.Set(v)
	other := reflect.New(v.Type()).Elem()
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if field := v.Type().Field(i); field.IsExported() {
				vary(v.Field(i), name+"."+field.Name, visit)
			}
		}
		return
	case reflect.Pointer:
		vary(v.Elem(), name, visit)
		if v.Elem().Kind() == reflect.Struct {
			return
		}
		v.Set(reflect.New(v.Type().Elem())) // zero is not the same as none
	case reflect.Slice:
		for i := range v.Len() {
			vary(v.Index(i), name, visit)
		}
		other = v.Slice(0, v.Len()-1)
	case reflect.Bool:
		other.SetBool(!v.Bool())
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		other.SetInt(v.Int() + 1)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		other.SetUint(v.Uint() + 1)
	case reflect.String:
		other.SetString(v.String() + "+")
	case reflect.Array:
		other.Index(0).SetUint(v.Index(0).Uint() + 1)
	}
	visit(name, func() { v.Set(other) })
	v.Set(kept)
}
