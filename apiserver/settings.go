package apiserver

import (
	"sync/atomic"
	"time"

	"shoal.dev/shoal/apiserver/internal/limits"
	"shoal.dev/shoal/controlplane/client"
)

// setFigures are the rate figures that operators have set, as this node knows them. They are
// recomputed when the settings change.
type setFigures struct {
	of   client.Reader
	made atomic.Pointer[madeFigures]
}

type madeFigures struct {
	from client.Settings
	set  limits.Set
}

func (f *setFigures) now() *limits.Set {
	settings := f.of.View().Settings()
	if made := f.made.Load(); made != nil && made.from.Revision == settings.Revision {
		return &made.set
	}
	made := &madeFigures{from: *settings, set: limits.Set{Figures: figuresOf(settings.Rates),
		Customers: figuresOf(settings.CustomerRates)}}
	f.made.Store(made)
	return &made.set
}

func figuresOf(figures []client.RateFigure) map[limits.Class]limits.Figure {
	byClass := make(map[limits.Class]limits.Figure, len(figures))
	for _, f := range figures {
		byClass[limits.Class(f.Class)] = limits.Figure{Count: int(f.Count),
			Per: time.Duration(f.Per) * time.Millisecond}
	}
	return byClass
}
