package command

import (
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/fault"
)

// Bounds of a customer's scrapers, so that no customer can fill the replicated state.
const (
	MaxScrapers = 100_000
	// MaxScraperBytes bounds scrapers with their recipes; the last one may exceed it.
	MaxScraperBytes = 256 << 20
)

// RoomForScraper refuses a scraper beyond the customer's bounds, or its plan's.
func RoomForScraper(v *state.View, customer string, by *PlanCap) error {
	count := v.OwnScrapers(customer)
	if count >= MaxScrapers {
		return fault.New(fault.LimitReached, "a customer has at most %d scrapers", MaxScrapers)
	}
	if err := by.Allows(count); err != nil {
		return err
	}
	return RoomForRecipe(v, customer)
}

// RoomForRecipe refuses additions to scrapers that have reached MaxScraperBytes.
func RoomForRecipe(v *state.View, customer string) error {
	known := v.Customer(customer)
	if known == nil || known.ScraperBytes < MaxScraperBytes {
		return nil
	}
	return fault.New(fault.LimitReached, "the scrapers of a customer have at most %d MiB",
		MaxScraperBytes>>20)
}
