package fsm

import (
	"strings"

	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/work"
)

func askHarvest(tx *state.Tx, p command.AskHarvestPayload) (state.Harvest, error) {
	if known := tx.Harvest(p.ID); known != nil {
		return *known, nil
	}
	if err := mayHarvest(tx, &p); err != nil {
		return state.Harvest{}, err
	}
	h := state.Harvest{ID: p.ID, Customer: p.Customer, Scraper: p.Scraper, URL: p.URL, Cap: p.Cap,
		IgnoreRobots: p.IgnoreRobots, State: state.HarvestRunning, CreatedAt: tx.Now,
		Operation: p.Operation, Key: p.Key}
	asked := h
	tx.PutHarvest(&asked)
	tx.PutWork(&state.Work{ID: p.ID, Kind: work.Harvest, Customer: p.Customer,
		State: state.WorkReady, At: tx.Now, Created: tx.Now, Advanced: tx.Now})
	return h, nil
}

// mayHarvest refuses a harvest beyond the bounds, or beside another one of the scraper.
func mayHarvest(tx *state.Tx, p *command.AskHarvestPayload) error {
	scraper := tx.Scraper(p.Scraper)
	if scraper == nil || scraper.Customer != p.Customer {
		return fault.Invalid(fault.ScraperNotFound, "scraperId", "there is no such scraper")
	}
	if p.ID.IsZero() || p.URL == "" || p.Cap == 0 || p.Cap > command.MaxHarvestCap {
		return fault.New(fault.InvalidRequest, "a harvest begins somewhere and takes at most %d "+
			"addresses", command.MaxHarvestCap)
	}
	if !p.Fits() {
		return fault.New(fault.InvalidRequest, "what names the harvest is too long")
	}
	held, open := tx.HarvestsFor(p.Customer), 0
	for _, h := range held {
		if h.State != state.HarvestRunning {
			continue
		}
		if h.Scraper == p.Scraper {
			return fault.Invalid(fault.HarvestRunning, "scraperId", "the scraper's harvest of "+
				"before is under way: its own call may wait for it")
		}
		open++
	}
	if open >= command.MaxHarvestsOn || len(held) >= command.MaxHarvests {
		return fault.New(fault.LimitReached, "a customer has at most %d harvests under way, and "+
			"%d of a day", command.MaxHarvestsOn, command.MaxHarvests)
	}
	if tx.IsShort() {
		return errShort()
	}
	return nil
}

// endHarvest records the first reported outcome of a harvest.
func endHarvest(tx *state.Tx, p command.EndHarvestPayload) (command.None, error) {
	known := tx.Harvest(p.ID)
	if known == nil || known.State != state.HarvestRunning {
		return command.None{}, nil
	}
	h := *known
	h.EndedAt, h.State, h.Count = tx.Now, state.HarvestDone, p.Count
	if p.Code != "" {
		h.State, h.Code = state.HarvestFailed, strings.ToValidUTF8(command.Shortened(p.Code), "")
		h.Detail = strings.ToValidUTF8(command.Shortened(p.Detail), "")
		h.Count = 0
		if claim := tx.Claim(h.Customer, h.Operation, h.Key); claim != nil && claim.Done {
			dropClaim(tx, claim)
		}
	}
	tx.PutHarvest(&h)
	return command.None{}, nil
}

// forgetHarvests removes wiped harvests, or marks them as wiped.
func forgetHarvests(tx *state.Tx, p command.ForgetHarvestsPayload) (command.None, error) {
	for _, id := range p.Harvests {
		known := tx.Harvest(id)
		if known == nil {
			continue
		}
		if known.Goes(&tx.View, tx.Now-command.HarvestKept) {
			if item := tx.WorkItem(id); item != nil {
				tx.RemoveWork(item)
			}
			tx.RemoveHarvest(known)
		} else if !known.Wiped {
			wiped := *known
			wiped.Wiped = true
			tx.PutHarvest(&wiped)
		}
	}
	return command.None{}, nil
}
