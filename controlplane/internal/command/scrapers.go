package command

import (
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/fault"
)

// Bounds of a customer's scrapers, so that no customer fills the replicated state.
const (
	MaxScrapers = 100_000
	// MaxScraperBytes is of scrapers with their recipes; one more may reach beyond.
	MaxScraperBytes = 256 << 20
)

// RoomForScraper refuses a scraper as one more than the customer, or its plan, may have.
func RoomForScraper(v *state.View, customer string, by *PlanCap) error {
	count := CountScrapers(v, customer)
	if count >= MaxScrapers {
		return fault.New(fault.LimitReached, "a customer has at most %d scrapers", MaxScrapers)
	}
	if err := by.Allows(count); err != nil {
		return err
	}
	return RoomForRecipe(v, customer)
}

// RoomForRecipe refuses what adds to the scrapers of a customer that take all that they may.
func RoomForRecipe(v *state.View, customer string) error {
	known := v.Customer(customer)
	if known == nil || known.ScraperBytes < MaxScraperBytes {
		return nil
	}
	return fault.New(fault.LimitReached, "the scrapers of a customer have at most %d MiB",
		MaxScraperBytes>>20)
}

// CountScrapers counts a customer's. Those that the service makes itself are nobody's.
func CountScrapers(v *state.View, customer string) (count int) {
	for _, group := range v.Groups(customer) {
		if group.Of.IsZero() {
			count += group.Scrapers
		}
	}
	return count
}
