package admin

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"shoal.dev/shoal/apiserver/api"
	"shoal.dev/shoal/apiserver/internal/auth"
	"shoal.dev/shoal/apiserver/internal/limits"
	"shoal.dev/shoal/apiserver/internal/operation"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/cache"
	"shoal.dev/shoal/pkg/fault"
)

// ServiceSettings are the settings that operators have made for all nodes (decisions 40 and 42).
type ServiceSettings struct {
	WalletBillingEnabled      bool              `json:"walletBillingEnabled" doc:"False: pages are counted and shown, but nothing is reserved or charged, and top-ups answer 404"`
	LowBalanceThresholdMicros int64             `json:"lowBalanceThresholdMicros" doc:"Threshold of new wallets, in micros, millionths of a euro; customers may set their own"`
	Rates                     map[string]string `json:"rates" doc:"How often a credential may make calls of each class, COUNT/PER, where it differs from the server's start options"`
	CustomerRates             map[string]string `json:"customerRates" doc:"The same, for all credentials of a customer together"`
	SignUpEnabled             bool              `json:"signUpEnabled" doc:"People may create their own accounts at /sign-up, if this service signs people in and sends e-mails"`
	Uploads                   UploadFigures     `json:"uploads"`
	HistoryDays               *uint32           `json:"historyDays" doc:"Days that an ended run stays in the history; null: as each control plane was started"`
	Plans                     []PlanOffer       `json:"plans" doc:"The catalogue of legacy plans, by level"`
	Revision                  uint64            `json:"revision" doc:"Number of the newest change; 0: nothing was ever set"`
	ChangedAt                 api.Time          `json:"changedAt"`
	ChangedBy                 string            `json:"changedBy" doc:"Subject of the admin"`
}

func (r Resource) newSettings(s *client.Settings) ServiceSettings {
	answer := ServiceSettings{WalletBillingEnabled: !s.BillingOff,
		LowBalanceThresholdMicros: client.LowBalanceMicros, Rates: textsOf(s.Rates),
		CustomerRates: textsOf(s.CustomerRates), SignUpEnabled: s.SignUp,
		Uploads: newUploadFigures(s), Plans: offersOf(r.Plans.Of(s)), Revision: s.Revision,
		ChangedAt: api.Time(s.ChangedAt), ChangedBy: s.ChangedBy}
	if s.HistoryDays > 0 {
		answer.HistoryDays = &s.HistoryDays
	}
	if s.Threshold != nil {
		answer.LowBalanceThresholdMicros = *s.Threshold
	}
	return answer
}

func textsOf(figures []client.RateFigure) map[string]string {
	texts := map[string]string{}
	for _, f := range figures {
		per := (time.Duration(f.Per) * time.Millisecond).String()
		if strings.HasSuffix(per, "m0s") {
			per = strings.TrimSuffix(per, "0s")
		}
		if strings.HasSuffix(per, "h0m") {
			per = strings.TrimSuffix(per, "0m")
		}
		texts[f.Class] = fmt.Sprintf("%d/%s", f.Count, per)
	}
	return texts
}

// ServiceSettingsInput is a change of settings. Members that are missing stay as they are.
type ServiceSettingsInput struct {
	WalletBillingEnabled      *bool             `json:"walletBillingEnabled" doc:"False: pages are counted and shown, but nothing is reserved or charged, and top-ups answer 404"`
	LowBalanceThresholdMicros *int64            `json:"lowBalanceThresholdMicros" min:"0" max:"1000000000000" doc:"Threshold of new wallets, in micros, millionths of a euro"`
	Rates                     map[string]string `json:"rates" doc:"All rates of credentials, COUNT/PER by class; a class left out has the rate of the server's start options"`
	CustomerRates             map[string]string `json:"customerRates" doc:"All rates of customers, likewise"`
	SignUpEnabled             *bool             `json:"signUpEnabled" doc:"People may create their own accounts at /sign-up, if this service signs people in and sends e-mails"`
	Uploads                   *UploadFigures    `json:"uploads" doc:"All limits of uploads"`
	HistoryDays               *uint32           `json:"historyDays" min:"0" max:"36500" doc:"Days that an ended run stays in the history, 90 or more; 0: as each control plane was started. Older runs are removed for good within a day. The ledger stays"`
	Plans                     []PlanOffer       `json:"plans" max:"16" doc:"The whole catalogue of legacy plans. STARTER has the lowest level and is free. Subscribers, also those in checkout, keep their price until their plan changes. Features and limits apply from the next call on"`
	Revision                  *uint64           `json:"revision" doc:"Revision of the settings that the admin has read; 409 if it is not today's. 0: nothing was ever set. Null or missing: any"`
	ChangedAt                 api.Time          `json:"changedAt" stamped:"true"`
	ChangedBy                 string            `json:"changedBy" stamped:"true"`
}

// Validate implements operation.Validator.
func (in *ServiceSettingsInput) Validate() fault.List {
	_, list := figuresOf("rates", in.Rates)
	_, others := figuresOf("customerRates", in.CustomerRates)
	list = append(list, others...)
	if in.Plans != nil {
		if _, wrong := catalogueOf(in.Plans); wrong != nil {
			list = append(list, wrong)
		}
	}
	return list
}

// figuresOf reads figures by class, in ascending order; nil if texts is nil.
func figuresOf(field string, texts map[string]string) (*[]client.RateFigure, fault.List) {
	if texts == nil {
		return nil, nil
	}
	var list fault.List
	figures := []client.RateFigure{}
	for _, class := range slices.Sorted(maps.Keys(texts)) {
		known := slices.Contains(limits.Classes(), limits.Class(class))
		if !known || field == "customerRates" && limits.Class(class) == limits.Anonymous {
			list = append(list, fault.Invalid(fault.InvalidRequest, field+"."+class,
				"is no class of calls that has such a figure"))
			continue
		}
		limit, err := cache.ParseLimit(texts[class])
		if err != nil {
			list = append(list, fault.Invalid(fault.InvalidRequest, field+"."+class, "%v", err))
			continue
		}
		figures = append(figures, client.RateFigure{Class: class, Count: uint32(limit.Count),
			Per: limit.Per.Milliseconds()})
	}
	return &figures, list
}

// settings is GET /api/admin/settings.
func (r Resource) settings() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID: "svc_admin_get_settings", Routes: operation.Routes("GET /api/admin/settings"),
		Group:   group,
		Summary: "Returns the settings of the whole service",
		Access:  auth.Admin, Rate: limits.Settings,
	}, func(_ context.Context, from *operation.Caller, _ *struct{}) (ServiceSettings, error) {
		return r.newSettings(from.View.Settings()), nil
	})
}

// putSettings is PUT /api/admin/settings.
func (r Resource) putSettings() *operation.Operation {
	return operation.Define(operation.Declaration{
		ID: "svc_admin_put_settings", Routes: operation.Routes("PUT /api/admin/settings"),
		Group:   group,
		Summary: "Changes the settings of the whole service, on all nodes",
		Description: "What the body does not name stays as it is. Changes apply from the next " +
			"call on, and to runs under way. A page is charged if billing is on both when it " +
			"is dispatched and when it comes back. So pages under way become free once billing " +
			"is off, and pages dispatched meanwhile stay free. Servers started without rate " +
			"limits ignore the rates. No rate locks operators out of this call. A body that " +
			"changes nothing makes no new revision. A restore does not change the settings.",
		Access: auth.Admin, Rate: limits.Settings, Errors: []fault.Code{fault.SettingsChanged},
	}, func(ctx context.Context, from *operation.Caller, in *struct {
		Body ServiceSettingsInput `body:"json"`
	}) (ServiceSettings, error) {
		change := client.PutSettings{By: from.Subject,
			Threshold: in.Body.LowBalanceThresholdMicros, SignUp: in.Body.SignUpEnabled,
			HistoryDays: in.Body.HistoryDays, Revision: in.Body.Revision}
		if on := in.Body.WalletBillingEnabled; on != nil {
			off := !*on
			change.BillingOff = &off
		}
		if u := in.Body.Uploads; u != nil {
			change.Uploads = &client.UploadFigures{Heavy: u.MaxHeavyImports,
				Seconds: u.MaxUploadSeconds, HoldMinutes: u.HoldMinutes}
		}
		change.Rates, _ = figuresOf("rates", in.Body.Rates) // they are valid
		change.CustomerRates, _ = figuresOf("customerRates", in.Body.CustomerRates)
		if in.Body.Plans != nil {
			catalogue, wrong := catalogueOf(in.Body.Plans)
			if wrong != nil {
				return ServiceSettings{}, wrong
			}
			list := catalogue.Settings()
			change.Plans = &list
		}
		set, err := client.Do(ctx, r.Client, change, nil)
		if err != nil {
			return ServiceSettings{}, err
		}
		return r.newSettings(&set), nil
	})
}
