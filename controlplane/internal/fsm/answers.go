package fsm

import (
	"bytes"
	"fmt"

	"shoal.dev/shoal/controlplane/internal/codec"
	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
)

// answer says how idempotency records keep a command's results. A repeated call sends the same
// request, so a record omits what that determines.
type answer struct {
	// keep returns the part of a result to keep; false: the payload does not determine the rest.
	keep func(payload command.Payload, result any) (any, bool)
	// remake rebuilds the result of a call that was applied at a state time.
	remake func(c *codec.Codec, data []byte, payload command.Payload, at int64) (any, error)
}

// answers returns the answers of all commands with large results.
func answers() map[command.Number]answer {
	all := map[command.Number]answer{}
	add(all, keepGroup, remakeGroup)
	add(all, keepScraper, remakeScraper)
	add(all, keepSchema, remakeSchema)
	add(all, keepLaunched, remakeLaunched)
	add(all, keepLaunches, remakeLaunches)
	add(all, keepEntry, remakeEntry)
	add(all, keepWebhook, remakeWebhook)
	add(all, keepProfile, remakeProfile)
	add(all, keepCategory, remakeCategory)
	add(all, keepExport, remakeExport)
	return all
}

func add[P command.Of[R], R, K any](all map[command.Number]answer, keep func(P, R) (K, bool),
	remake func(P, K, int64) R) {
	var none P
	all[none.Declaration().Number] = answer{
		keep: func(payload command.Payload, result any) (any, bool) {
			return keep(payload.(P), result.(R))
		},
		remake: func(c *codec.Codec, data []byte, payload command.Payload, at int64) (any, error) {
			var kept K
			if err := c.Unmarshal(data, &kept); err != nil {
				return nil, err
			}
			given, _ := payload.(P) // a replayed launch claim needs no payload
			return remake(given, kept, at), nil
		},
	}
}

// lookUp reads the result of an already applied command from the current state.
type lookUp func(tx *state.Tx, payload command.Payload) (any, error)

// lookUps returns the lookups of commands that change a little of something large. For a proposer
// that missed their result, the state only records that they were applied.
func lookUps() map[command.Number]lookUp {
	profile := func(tx *state.Tx, customer string) (state.Profile, error) {
		known, err := changedProfile(tx, customer)
		if err != nil {
			return state.Profile{}, err
		}
		return *known, nil
	}
	return map[command.Number]lookUp{
		command.PutRetentionPayload{}.Declaration().Number: func(tx *state.Tx,
			payload command.Payload) (any, error) {
			scraper, err := retained(tx, payload.(command.PutRetentionPayload))
			scraper.Content = state.Hash{} // only the record has it
			return scraper, err
		},
		command.RenameCustomerPayload{}.Declaration().Number: func(tx *state.Tx,
			payload command.Payload) (any, error) {
			return profile(tx, payload.(command.RenameCustomerPayload).Customer)
		},
		command.ChangeInfoPayload{}.Declaration().Number: func(tx *state.Tx,
			payload command.Payload) (any, error) {
			return profile(tx, payload.(command.ChangeInfoPayload).Customer)
		},
	}
}

// looksUp reports whether nothing is kept of a result for a proposer that missed it.
func (m *FSM) looksUp(tx *state.Tx, payload command.Payload, result Result) bool {
	return result.Err == nil && tx.ClusterVersion() >= state.BriefSince &&
		m.lookUps[payload.Declaration().Number] != nil
}

// brief returns what a record keeps of a result. It is nil when the record must keep all of it,
// because remaking it would give another result.
func (m *FSM) brief(tx *state.Tx, payload command.Payload, result Result) []byte {
	how, known := m.answers[payload.Declaration().Number]
	if !known || result.Err != nil || tx.ClusterVersion() < state.BriefSince {
		return nil
	}
	kept, enough := how.keep(payload, result.Value)
	if !enough {
		return nil
	}
	data, err := m.codec.Marshal(kept)
	if err != nil {
		panic(fmt.Sprintf("fsm: what is kept of a result cannot be encoded: %v", err))
	}
	again, err := how.remake(m.codec, data, payload, tx.Now)
	if err != nil {
		panic(fmt.Sprintf("fsm: what is kept of a result cannot be decoded: %v", err))
	}
	whole, _ := m.save(result)
	if remade, _ := m.save(Result{Value: again}); !bytes.Equal(whole, remade) {
		return nil
	}
	return data
}

// replay returns a record's answer to a repeated call.
func (m *FSM) replay(claim *state.Claim, payload command.Payload) Result {
	if claim.Kept == nil {
		return m.load(claim.Number, claim.Result, claim.Fault)
	}
	number := command.Number(claim.Number)
	if _, claims := payload.(command.ClaimCallPayload); !claims &&
		payload.Declaration().Number != number {
		return Result{Err: fault.New(fault.Internal,
			"the key was used for command %d, not %d", number, payload.Declaration().Number)}
	}
	return m.remake(claim.Number, claim.Kept, payload, claim.Expires-claimKeptMillis)
}

// remake rebuilds a result from the part that a record kept.
func (m *FSM) remake(number uint16, kept []byte, payload command.Payload, at int64) Result {
	value, err := m.answers[command.Number(number)].remake(m.codec, kept, payload, at)
	if err != nil {
		panic(fmt.Sprintf("fsm: what is kept of a result cannot be decoded: %v", err))
	}
	return Result{Value: value}
}

// tag is an endpoint's tag: the number of a well-known tag, or its text.
type tag struct {
	_      struct{} `cbor:",toarray"`
	Number uint8
	Text   string
}

// wellKnown lists the tags with numbers, from 1. Append only.
func wellKnown() []string {
	return []string{model.ProductPageTag, model.ProductListTag, model.SearchTag,
		model.WebsiteContacts}
}

func tagOf(text string) tag {
	for n, known := range wellKnown() {
		if text == known {
			return tag{Number: uint8(n + 1)}
		}
	}
	return tag{Text: text}
}

func (t tag) text() string {
	if n := int(t.Number); n > 0 && n <= len(wellKnown()) {
		return wellKnown()[n-1]
	}
	return t.Text
}

type keptGroup struct {
	_        struct{} `cbor:",toarray"`
	ID       ids.ID
	Created  int64
	Scrapers int
}

func keepGroup(p command.PutGroupPayload, g state.Group) (keptGroup, bool) {
	return keptGroup{ID: g.ID, Created: g.CreatedAt, Scrapers: g.Scrapers}, !p.Filled
}

func remakeGroup(p command.PutGroupPayload, k keptGroup, at int64) state.Group {
	return state.Group{ID: k.ID, Customer: p.Customer, Name: p.Name, DataTable: p.DataTable,
		StartType: p.StartType, ShouldMatchProducts: p.ShouldMatchProducts, CreatedAt: k.Created,
		UpdatedAt: at, Scrapers: k.Scrapers, Retention: p.Retention, Zone: p.Zone,
		Quarantine: p.Quarantine, Alerts: p.Alerts}
}

type keptScraper struct {
	_        struct{} `cbor:",toarray"`
	ID       ids.ID
	Created  int64
	Revision uint32
	ListRun  bool
	Tag      tag
	LastJob  ids.ID
}

func keepScraper(_ command.PutScraperPayload, s state.Scraper) (keptScraper, bool) {
	return keptScraper{ID: s.ID, Created: s.CreatedAt, Revision: s.Revision, ListRun: s.ListRun,
		Tag: tagOf(s.Tag), LastJob: s.LastJob}, true
}

func remakeScraper(p command.PutScraperPayload, k keptScraper, at int64) state.Scraper {
	return state.Scraper{ID: k.ID, Customer: p.Customer, Group: p.Group, Spec: p.Spec,
		Revision: k.Revision, CreatedAt: k.Created, UpdatedAt: at, ListRun: k.ListRun,
		Tag: k.Tag.text(), LastJob: k.LastJob}
}

type keptSchema struct {
	_       struct{} `cbor:",toarray"`
	ID      ids.ID
	Created int64
}

func keepSchema(_ command.PutSchemaPayload, s state.Schema) (keptSchema, bool) {
	return keptSchema{ID: s.ID, Created: s.CreatedAt}, true
}

func remakeSchema(p command.PutSchemaPayload, k keptSchema, at int64) state.Schema {
	return state.Schema{ID: k.ID, Customer: p.Customer, Name: p.Name, Version: p.Version,
		Type: p.Type, Content: p.Content, Description: p.Description, TemplateID: p.TemplateID,
		TemplateName: p.TemplateName, DomainPatterns: p.DomainPatterns, CreatedAt: k.Created,
		UpdatedAt: at}
}

type keptLaunched struct {
	_       struct{} `cbor:",toarray"`
	Job     ids.ID
	Scraper ids.ID
	Tag     tag
	Links   uint32
	Dropped uint32
	Unpaid  bool
}

func keepLaunched(_ command.LaunchRunPayload, l command.Launched) (keptLaunched, bool) {
	return keptLaunched{Job: l.Job, Scraper: l.Scraper, Tag: tagOf(l.Tag), Links: l.Links,
		Dropped: l.Dropped, Unpaid: l.State == model.Failed}, true
}

func remakeLaunched(_ command.LaunchRunPayload, k keptLaunched, at int64) command.Launched {
	l := command.Launched{Job: k.Job, Scraper: k.Scraper, Tag: k.Tag.text(), Links: k.Links,
		Dropped: k.Dropped, State: model.Pending, Queued: at}
	if k.Unpaid {
		l.State, l.Message = model.Failed, neverToppedUp
	}
	return l
}

type keptLaunches struct {
	_       struct{} `cbor:",toarray"`
	Runs    []keptRun
	Unpaid  bool // all runs failed at once
	Skipped []command.SkippedScraper
	Unnamed uint32
}

type keptRun struct {
	_       struct{} `cbor:",toarray"`
	Job     ids.ID
	Scraper ids.ID
}

func keepLaunches(_ command.LaunchRunsPayload, l command.LaunchedRuns) (keptLaunches, bool) {
	k := keptLaunches{Skipped: l.Skipped, Unnamed: l.Unnamed,
		Unpaid: len(l.Jobs) > 0 && l.Jobs[0].State == model.Failed}
	for _, job := range l.Jobs {
		k.Runs = append(k.Runs, keptRun{Job: job.Job, Scraper: job.Scraper})
	}
	return k, true
}

func remakeLaunches(_ command.LaunchRunsPayload, k keptLaunches, at int64) command.LaunchedRuns {
	l := command.LaunchedRuns{Skipped: k.Skipped, Unnamed: k.Unnamed}
	state := model.Pending
	if k.Unpaid {
		state = model.Failed
	}
	for _, run := range k.Runs {
		l.Jobs = append(l.Jobs, command.GroupJob{Job: run.Job, Scraper: run.Scraper,
			State: state, Queued: at})
	}
	return l
}

type keptEntry struct {
	_        struct{} `cbor:",toarray"`
	ID       ids.ID
	After    int64
	Sequence uint64
	Created  uint64
}

func keepEntry(_ command.AdjustWalletPayload, e state.Entry) (keptEntry, bool) {
	return keptEntry{ID: e.ID, After: e.BalanceAfter, Sequence: e.Sequence,
		Created: e.Created}, true
}

func remakeEntry(p command.AdjustWalletPayload, k keptEntry, at int64) state.Entry {
	return state.Entry{ID: k.ID, Customer: p.Customer, Type: state.EntryAdjustment,
		Status: state.EntryApplied, Amount: p.Amount, Note: p.Note, BalanceAfter: k.After,
		CreatedAt: at, SettledAt: at, Sequence: k.Sequence, Created: k.Created}
}

type keptWebhook struct {
	_      struct{} `cbor:",toarray"`
	ID     ids.ID
	Secret []byte
}

func keepWebhook(p command.PutWebhookPayload, w state.Webhook) (keptWebhook, bool) {
	return keptWebhook{ID: w.ID, Secret: w.Secret}, len(p.Secret) > 0
}

func remakeWebhook(p command.PutWebhookPayload, k keptWebhook, at int64) state.Webhook {
	w := state.Webhook{ID: k.ID, Customer: p.Customer, URL: p.URL, Events: p.Events,
		Secret: k.Secret, CreatedAt: at}
	if p.Off {
		w.Off = state.WebhookStopped
	}
	return w
}

// keptProfile is for a customer that had no profile before it signed up.
type keptProfile struct {
	_ struct{} `cbor:",toarray"`
}

func keepProfile(command.SignUpPayload, state.Profile) (keptProfile, bool) {
	return keptProfile{}, true
}

func remakeProfile(p command.SignUpPayload, _ keptProfile, at int64) state.Profile {
	return state.Profile{Customer: p.Customer, Email: p.Email, Firstname: p.Firstname,
		Lastname: p.Lastname, AgreedAt: at, UpdatedAt: at}
}

type keptCategory struct {
	_       struct{} `cbor:",toarray"`
	ID      ids.ID
	Created int64
}

func keepCategory(_ command.PutCategoryPayload, c state.Category) (keptCategory, bool) {
	return keptCategory{ID: c.ID, Created: c.CreatedAt}, true
}

func remakeCategory(p command.PutCategoryPayload, k keptCategory, at int64) state.Category {
	return state.Category{ID: k.ID, Group: p.Group, Customer: p.Customer, Name: p.Name,
		Filters: p.Filters, CreatedAt: k.Created, UpdatedAt: at}
}

type keptExport struct {
	_  struct{} `cbor:",toarray"`
	ID ids.ID
}

func keepExport(_ command.AskExportPayload, e state.Export) (keptExport, bool) {
	return keptExport{ID: e.ID}, true
}

func remakeExport(p command.AskExportPayload, k keptExport, at int64) state.Export {
	return state.Export{ID: k.ID, Customer: p.Customer, Key: p.Key, Request: p.Request,
		Owner: p.Owner, Groups: p.Groups, State: state.ExportWaiting, CreatedAt: at,
		ExpiresAt: at + p.Kept}
}
