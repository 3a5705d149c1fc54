package api

import "shoal.dev/shoal/controlplane/client"

// never is a start that is too far away to be one.
const never = 253_370_764_800_000 // the year 9999

// NextStart is when a scraper starts next by itself: by its own schedule, or with its group. It is
// null while nobody has said it yet, and of what is paused or starts by hand alone.
func NextStart(v *client.View, s *client.Scraper) Time {
	group := v.Group(s.Group)
	if group == nil || group.StartType == "NONE" {
		return 0
	}
	if s.Spec.Schedule == "" {
		return nextOf(v.Schedule(group.ID))
	}
	return nextOf(v.Schedule(s.ID))
}

// NextGroupStart is when a group starts next by itself.
func NextGroupStart(v *client.View, g *client.Group) Time { return nextOf(v.Schedule(g.ID)) }

func nextOf(s *client.Schedule) Time {
	if s == nil || s.Next >= never {
		return 0
	}
	return Time(s.Next)
}
