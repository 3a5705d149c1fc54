package fsm

import (
	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
)

// Bounds of an account's grants.
const (
	maxGrants     = 20
	maxGrantCodes = 20
)

func issueCode(tx *state.Tx, p command.IssueCodePayload) (state.GrantCode, error) {
	if known := tx.GrantCode(p.Hash); known != nil {
		return *known, nil
	}
	session, account := tx.Session(p.Session), (*state.Account)(nil)
	if session != nil && !session.Ended(tx.Now) {
		account = tx.Account(session.Account)
	}
	if account == nil {
		return state.GrantCode{}, fault.New(fault.Unauthorized, "the session has ended: sign in "+
			"again")
	}
	if tx.Customer(account.Customer).Blocked() {
		return state.GrantCode{}, fault.New(fault.CustomerBlocked, "the operator of the service "+
			"has blocked this customer")
	}
	for open := tx.GrantCodes(account.ID); len(open) >= maxGrantCodes; open = open[1:] {
		tx.RemoveGrantCode(open[0])
	}
	code := state.GrantCode{Hash: p.Hash, Account: account.ID, Client: p.Client, Name: p.Name,
		Redirect: p.Redirect, Verifier: p.Verifier, Scope: p.Scope, Resource: p.Resource,
		Expires: tx.Now + state.GrantCodeMillis}
	tx.PutGrantCode(&code)
	tx.AuditEvent("consent")
	return code, nil
}

func redeemCode(tx *state.Tx, p command.RedeemCodePayload) (state.Grant, error) {
	code := tx.GrantCode(p.Hash)
	switch {
	case code == nil:
		return state.Grant{}, nil
	case !code.Grant.IsZero():
		grant := tx.Grant(code.Grant)
		if grant == nil {
			return state.Grant{}, nil
		}
		if grant.ID == p.Grant {
			return *grant, nil
		}
		tx.RemoveGrant(grant) // two programs have the code, so one has stolen it
		return state.Grant{}, nil
	}
	spent := *code
	spent.Grant = p.Grant
	tx.PutGrantCode(&spent)
	account := tx.Account(code.Account)
	if account == nil || tx.Now >= code.Expires || code.Client != p.Client ||
		p.Redirect != (state.Hash{}) && p.Redirect != code.Redirect ||
		code.Verifier != p.Verifier || p.Resource != "" && p.Resource != code.Resource ||
		tx.Customer(account.Customer).Blocked() {
		return state.Grant{}, nil
	}
	for open := tx.Grants(account.ID); len(open) >= maxGrants; open = open[1:] {
		tx.RemoveGrant(open[0])
	}
	grant := state.Grant{ID: p.Grant, Account: account.ID, Customer: account.Customer,
		Client: code.Client, Name: code.Name, Scope: code.Scope, Resource: code.Resource,
		Family: p.Family, Refresh: p.Refresh, Access: p.Access,
		AccessUntil: tx.Now + state.GrantAccessMillis, CreatedAt: tx.Now, UsedAt: tx.Now}
	tx.PutGrant(&grant)
	return grant, nil
}

func refreshGrant(tx *state.Tx, p command.RefreshGrantPayload) (state.Grant, error) {
	grant := tx.GrantByFamily(p.Family)
	switch {
	case grant == nil || grant.Client != p.Client || tx.Customer(grant.Customer).Blocked() ||
		p.Resource != "" && p.Resource != grant.Resource:
		return state.Grant{}, nil
	case tx.Now >= grant.UsedAt+state.GrantIdleMillis:
		tx.RemoveGrant(grant)
		return state.Grant{}, nil
	case p.Was == grant.Refresh:
		next := *grant
		next.Was, next.Refresh, next.Access = grant.Refresh, p.Refresh, p.Access
		next.UsedAt, next.AccessUntil = tx.Now, tx.Now+state.GrantAccessMillis
		tx.PutGrant(&next)
		return next, nil
	case p.Was == grant.Was && p.Refresh == grant.Refresh &&
		tx.Now < grant.UsedAt+state.GrantRepeatMillis:
		return *grant, nil
	}
	tx.RemoveGrant(grant)
	return state.Grant{}, nil
}

func endGrant(tx *state.Tx, p command.EndGrantPayload) (command.None, error) {
	if grant := tx.Grant(p.Grant); grant != nil && grant.Customer == p.Customer {
		tx.RemoveGrant(grant)
	}
	return command.None{}, nil
}

// endGrants ends an account's grants and removes its unused codes.
func endGrants(tx *state.Tx, account ids.ID) {
	for _, grant := range tx.Grants(account) {
		tx.RemoveGrant(grant)
	}
	for _, code := range tx.GrantCodes(account) {
		tx.RemoveGrantCode(code)
	}
}

// expireGrants ends grants without a refresh for too long, and removes old codes, a bounded number
// at a time.
func expireGrants(tx *state.Tx) {
	var idle []*state.Grant
	tx.GrantsByUse(func(g *state.Grant) bool {
		if g.UsedAt+state.GrantIdleMillis > tx.Now || len(idle) == maxExpiredPerTick {
			return false
		}
		idle = append(idle, g)
		return true
	})
	for _, g := range idle {
		tx.RemoveGrant(g)
	}
	var old []*state.GrantCode
	tx.GrantCodesByAge(func(c *state.GrantCode) bool {
		if c.Expires+state.GrantCodeKeptMillis > tx.Now || len(old) == maxExpiredPerTick {
			return false
		}
		old = append(old, c)
		return true
	})
	for _, c := range old {
		tx.RemoveGrantCode(c)
	}
}
