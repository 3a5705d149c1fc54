package fsm

import (
	"maps"
	"reflect"
	"slices"
	"testing"

	"shoal.dev/shoal/controlplane/internal/command"
)

// largeResults are the commands whose result a call's record keeps whole, and the most bytes that
// it takes. Their request does not determine it, as the customer changes a part of something.
var largeResults = map[string]int{
	"StopGroupPayload":      50 << 10,                                // the runs of a group
	"RenameCustomerPayload": 70 << 10, "ChangeInfoPayload": 70 << 10, // a whole profile
	"PutRetentionPayload":   1 << 20, // a scraper with its recipe
	"SetPricesPayload":      64 << 10,
	"AskHarvestPayload":     10 << 10, // an address
	"PreferNoticesPayload":  4 << 10,  // preferences for 64 events
	"OpenTopUpPayload":      2 << 10,  // a checkout's address
	"RotateWebhookPayload":  2 << 10,  // an address, and two secrets
	"BeginImportPayload":    1100,     // a key column
	"PutSitePayload":        1 << 10,  // a name
	"BeginReExtractPayload": 300,      // a tag
	"PutThresholdPayload":   300,      // a wallet
	"StopRunPayload":        60,       // a run or two
}

// keyless are commands that no call with a key makes, though a type does not bound their results.
var keyless = []string{"ClaimCallPayload", "CreateAccountPayload", "PutSettingsPayload",
	"PutUploadLimitsPayload", "OpenCheckoutPayload", "RevokeKeyPayload", "BeginMovePayload",
	"MintKeyPayload", "BlockCustomerPayload", "UnblockCustomerPayload", "SeedPlansPayload",
	"PreviewDeletePayload", "PutPricesPayload", "IssueTicketPayload", "TakeTicketPayload",
	"ReadNoticesPayload", "BeginCataloguePayload", "ReverseTopUpPayload", "PayTopUpPayload",
	"AddPasskeyPayload", "ChooseFreePayload", "TellContractPayload", "OpenCustomerPayload",
	"HandLetterPayload", "IssueCodePayload", "RedeemCodePayload", "RefreshGrantPayload",
	"EndExportPayload", "SendDeliveryPayload", "TakeMailsPayload"}

// TestEveryResultOfACallIsBounded: whatever command a call makes, its record is brief. Either the
// type of the result bounds it, or answers says what is kept of it, or it is listed above.
func TestEveryResultOfACallIsBounded(t *testing.T) {
	m, large := New(), map[string]bool{}
	for number, payload := range samples(t, m) {
		known, name := m.registry[number], reflect.TypeOf(payload).Name()
		if known.By != command.APIServer || m.answers[number].keep != nil {
			continue
		}
		var result reflect.Type
		if zero, err := known.load(m.codec, emptyMap); err == nil {
			result = reflect.TypeOf(zero)
			if bytes, bounded := mostBytes(result); bounded && bytes <= mostKept {
				continue
			}
		} // otherwise it is a list
		large[name] = true
		if largeResults[name] == 0 && !slices.Contains(keyless, name) {
			t.Errorf("%s: a call's record would keep a whole %v", name, result)
		}
	}
	for _, name := range slices.Concat(keyless, slices.Collect(maps.Keys(largeResults))) {
		if !large[name] {
			t.Errorf("%s is listed, and its result is small", name)
		}
	}
}

// mostBytes bounds what values of a type take when encoded. bounded is false for texts and lists.
func mostBytes(of reflect.Type) (bytes int, bounded bool) {
	switch of.Kind() {
	case reflect.Bool:
		return 1, true
	case reflect.Pointer:
		return mostBytes(of.Elem())
	case reflect.Array:
		one, bounded := mostBytes(of.Elem())
		if of.Elem().Kind() == reflect.Uint8 {
			one = 1
		}
		return 2 + of.Len()*one, bounded
	case reflect.Struct:
		bytes, bounded = 2, true
		for i := range of.NumField() {
			if field := of.Field(i); field.IsExported() {
				n, ok := mostBytes(field.Type)
				bytes, bounded = bytes+2+n, bounded && ok
			}
		}
		return bytes, bounded
	case reflect.String, reflect.Slice, reflect.Map, reflect.Interface:
		return 0, false
	}
	return 9, true // a number
}
