package state

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"shoal.dev/shoal/controlplane/internal/codec"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
)

// What the audit trail tells about each kind of record: what people decide, not what follows from
// it. A record that only counts, or was only used, is not a change. Of recipes, addresses and
// customers' own data it tells hashes; of passwords and keys it tells none. The trail never
// changes, and outlives removed customers. So it names no persons, except those that groups are
// shared with. docs/operations/removal.md says what it keeps.

// telling hides a customer that is not blocked and has the general upload bounds.
func (c *Customer) telling() telling {
	if !c.Blocked() && c.UploadBytes == 0 && c.SheetBytes == 0 {
		return telling{}
	}
	return telling{c.Ref, struct {
		BlockedAt   int64  `json:"blockedAt"`
		BlockedBy   string `json:"blockedBy"`
		RemovedAt   int64  `json:"removedAt,omitempty"`
		UploadBytes int64  `json:"uploadBytes,omitempty"`
		SheetBytes  int64  `json:"sheetBytes,omitempty"`
	}{c.BlockedAt, c.BlockedBy, c.RemovedAt, c.UploadBytes, c.SheetBytes}}
}

func (k *Key) telling() telling {
	return telling{k.Customer, struct {
		Name      string      `json:"name"`
		Scope     model.Scope `json:"scope"`
		CreatedAt int64       `json:"createdAt"`
		ExpiresAt int64       `json:"expiresAt,omitempty"`
	}{k.Name, k.Scope, k.CreatedAt, k.ExpiresAt}}
}

func (g *Group) telling() telling {
	return telling{g.Customer, struct {
		Name      string `json:"name"`
		DataTable string `json:"dataTable"`
		StartType string `json:"startType"`
		Match     bool   `json:"shouldMatchProducts"`
		Retention int    `json:"retention"`
		Held      bool   `json:"quarantine,omitempty"`
		Alerts    string `json:"changeAlerts,omitempty"`
		Zone      string `json:"scheduleTimezone,omitempty"`
	}{g.Name, g.DataTable, g.StartType, g.ShouldMatchProducts, g.Retention, g.Quarantine,
		tellAlerts(g.Alerts), g.Zone}}
}

func tellAlerts(a *Alerts) string {
	if a == nil {
		return ""
	}
	text := strings.Join(a.On, " ")
	if len(a.Key) > 0 {
		text += " by " + strings.Join(a.Key, ", ")
	}
	return text
}

func (s *Scraper) telling() telling {
	retention := 0
	if s.Spec.Config != nil && s.Spec.Config.RetentionCount != nil {
		retention = *s.Spec.Config.RetentionCount
	}
	var protection Protection
	if s.Protection != nil {
		protection = *s.Protection
	}
	return telling{s.Customer, struct {
		Name      string            `json:"name"`
		Type      model.ScraperType `json:"type"`
		Group     ids.ID            `json:"groupId"`
		Revision  uint32            `json:"revision"`
		Recipe    string            `json:"recipeSha256"`
		Retention int               `json:"retentionCount,omitempty"`
		Schedule  string            `json:"schedule,omitempty"`
		Zone      string            `json:"scheduleTimezone,omitempty"`
		Spec      string            `json:"specSha256"`
		Key       string            `json:"keyColumn,omitempty"`
		Matched   string            `json:"matchedColumn,omitempty"`
		Updated   int64             `json:"updatedAt"`
	}{s.Spec.Name, s.Spec.Type, s.Group, s.Revision, hex.EncodeToString(s.Content[:]), retention,
		s.Spec.Schedule, s.Spec.ScheduleTimezone, sumOfAll(&s.Spec), protection.Key,
		protection.Matched, s.UpdatedAt}}
}

func (j *Job) telling() telling {
	return telling{j.Customer, struct {
		Scraper ids.ID         `json:"scraperId"`
		Links   uint32         `json:"links"`
		State   model.JobState `json:"state"`
		Source  model.Source   `json:"source,omitempty"`
		Most    json.Number    `json:"maxChargeMicros,omitempty"`
		Ignores bool           `json:"ignoreRobots,omitempty"`
	}{j.Scraper, j.Links, j.State, j.Source, tellNumber(j.MaxCharge), j.IgnoresRobots}}
}

func (w *Wallet) telling() telling {
	return telling{w.Customer, struct {
		Balance   int64 `json:"balanceMicros"`
		Threshold int64 `json:"thresholdMicros"`
	}{w.Balance(), w.Threshold}}
}

// telling hides all entries but adjustments.
func (e *Entry) telling() telling {
	if e.Type != EntryAdjustment {
		return telling{}
	}
	return telling{e.Customer, struct {
		Amount int64  `json:"amountMicros"`
		After  int64  `json:"balanceAfterMicros"`
		Note   string `json:"note,omitempty"`
	}{e.Amount, e.BalanceAfter, e.Note}}
}

func (p *Profile) telling() telling {
	return telling{p.Customer, struct {
		Infos     int   `json:"infos"`
		UpdatedAt int64 `json:"updatedAt"`
	}{len(p.Info), p.UpdatedAt}}
}

// telling shows what the inbox's customer has set and read, not what has arrived.
func (i *Inbox) telling() telling {
	preferences := ""
	for _, p := range i.Preferences {
		preferences += string(p.Event) + "=" + string(p.How) + " "
	}
	return telling{i.Customer, struct {
		Preferences string `json:"preferences"`
		Read        uint32 `json:"read"`
	}{preferences, i.Notices - i.Unread}}
}

func (u *TopUp) telling() telling {
	return telling{u.Customer, struct {
		Status string `json:"status"`
		Asked  int64  `json:"askedMicros"`
		Paid   int64  `json:"paidMicros"`
	}{u.Status, u.Asked, u.Paid}}
}

func (s *Subscription) telling() telling {
	return telling{s.Customer, struct {
		Plan      string `json:"plan"`
		Active    bool   `json:"active"`
		Scheduled string `json:"scheduledPlan,omitempty"`
		Checkout  string `json:"checkoutOf,omitempty"`
	}{s.Plan(), s.Active(), s.Scheduled(), s.Checkout.Plan}}
}

func (s *Schema) telling() telling {
	content := *s
	content.UpdatedAt = 0
	return telling{s.Customer, struct {
		Name    string `json:"name"`
		Type    string `json:"type"`
		Version int64  `json:"version"`
		Updated int64  `json:"updatedAt"`
		Content string `json:"sha256"`
	}{s.Name, s.Type, s.Version, s.UpdatedAt, sumOfAll(&content)}}
}

func (c *Category) telling() telling {
	return telling{c.Customer, struct {
		Group   ids.ID `json:"groupId"`
		Name    string `json:"name"`
		Filters string `json:"filtersSha256"`
		Updated int64  `json:"updatedAt"`
	}{c.Group, c.Name, sumOf(c.Filters), c.UpdatedAt}}
}

func (s *Site) telling() telling {
	return telling{s.Customer, struct {
		Scraper ids.ID `json:"scraperId"`
		Name    string `json:"name"`
		Version ids.ID `json:"version"`
		Links   uint32 `json:"links"`
		Updated int64  `json:"updatedAt"`
	}{s.Scraper, s.Name, s.Version, s.Links, s.UpdatedAt}}
}

func (s *Share) telling() telling {
	return telling{s.Owner, struct {
		Email     string `json:"email"`
		CreatedAt int64  `json:"createdAt"`
	}{s.Email, s.CreatedAt}}
}

func (h *Harvest) telling() telling {
	return telling{h.Customer, struct {
		Scraper ids.ID       `json:"scraperId"`
		State   HarvestState `json:"state"`
		Cap     uint32       `json:"cap"`
		Ignores bool         `json:"ignoreRobots,omitempty"`
	}{h.Scraper, h.State, h.Cap, h.IgnoreRobots}}
}

func (e *Export) telling() telling {
	groups := make([]string, 0, len(e.Groups))
	for _, group := range e.Groups {
		groups = append(groups, group.String())
	}
	return telling{e.Customer, struct {
		Owner  string      `json:"owner"`
		Groups string      `json:"groupIds"`
		State  ExportState `json:"state"`
		Rows   string      `json:"requestSha256"`
	}{e.Owner, strings.Join(groups, " "), e.State, sumOf(e.Request)}}
}

func (s *Settings) telling() telling {
	detail := struct {
		Billing       bool        `json:"walletBillingEnabled"`
		Threshold     json.Number `json:"lowBalanceThresholdMicros,omitempty"`
		Rates         string      `json:"rates,omitempty"`
		CustomerRates string      `json:"customerRates,omitempty"`
		SignUp        bool        `json:"signUpEnabled,omitempty"`
		History       uint32      `json:"historyDays,omitempty"`
		Heavy         uint32      `json:"maxHeavyImports,omitempty"`
		Upload        uint32      `json:"maxUploadSeconds,omitempty"`
		Hold          uint32      `json:"holdMinutes,omitempty"`
		Plans         string      `json:"plans,omitempty"`
		Terms         string      `json:"planTerms,omitempty"`
	}{Billing: !s.BillingOff, Threshold: tellNumber(s.Threshold), Rates: tellRates(s.Rates),
		CustomerRates: tellRates(s.CustomerRates), SignUp: s.SignUp, History: s.HistoryDays,
		Heavy: s.Uploads.Heavy, Upload: s.Uploads.Seconds, Hold: s.Uploads.HoldMinutes}
	detail.Plans, detail.Terms = tellPlans(s.Plans)
	return telling{"", detail}
}

// telling shows all rows of a version, in its order.
func (p *PriceTable) telling() telling {
	rows, labels := make([]string, 0, len(p.Rows)), ""
	for _, r := range p.Rows {
		labels += r.Label + "\n"
		text := fmt.Sprintf("%s=%d", r.RowKey, r.Micros)
		if r.Off {
			text += " off"
		}
		rows = append(rows, text)
	}
	return telling{"", struct {
		Rows   string `json:"sellingPriceMicros"`
		Labels string `json:"labelsSha256"`
	}{strings.Join(rows, ", "), sumOf([]byte(labels))}}
}

// tellPlans shows the plans' prices, in cents, and their terms. The terms may be cut as too long,
// so costs begins with a hash of both.
func tellPlans(plans []Plan) (costs, terms string) {
	if len(plans) == 0 {
		return "", ""
	}
	for i := range plans {
		p := &plans[i]
		costs += fmt.Sprintf(" %s=%d", p.Name, p.Cents)
		if p.Offered {
			costs += " offered"
		}
		terms += fmt.Sprintf("%s %d %s", p.Name, p.Level, strings.Join(p.Features, " "))
		for _, limit := range p.Limits {
			terms += fmt.Sprintf(" %s=%d", limit.Name, limit.Most)
		}
		terms += "; "
	}
	return "sha256:" + sumOf([]byte(costs+terms)) + costs, terms
}

func tellRates(figures []RateFigure) string {
	text := ""
	for _, f := range figures {
		text += fmt.Sprintf("%s=%d/%dms ", f.Class, f.Count, f.Per)
	}
	return text
}

// telling shows only what an operator sets.
func (n *Node) telling() telling {
	return telling{"", struct {
		Draining bool `json:"draining"`
	}{n.Draining}}
}

// tellNumber shows a number that may be unset, and then is left out.
func tellNumber(n *int64) json.Number {
	if n == nil {
		return ""
	}
	return json.Number(strconv.FormatInt(*n, 10))
}

// sumOf tells a change of data that the trail does not show.
func sumOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// sumOfAll tells a change of any member of a value.
func sumOfAll(value any) string {
	encoded, err := codec.New().Marshal(value)
	if err != nil {
		panic(fmt.Sprintf("state: encode what the audit trail tells: %v", err)) // as in snapshots
	}
	return sumOf(encoded)
}
