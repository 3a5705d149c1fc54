package apiserver

import (
	"shoal.dev/shoal/apiserver/api/data"
	"shoal.dev/shoal/apiserver/api/uploads"
	"shoal.dev/shoal/apiserver/internal/changes"
	"shoal.dev/shoal/apiserver/internal/diff"
	"shoal.dev/shoal/apiserver/internal/harvest"
	"shoal.dev/shoal/apiserver/internal/launch"
	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/bodies"
	"shoal.dev/shoal/pkg/work"
)

// launcher makes the launcher of runs.
func (s *Server) launcher() *launch.Launcher {
	c := &s.config
	return &launch.Launcher{Client: c.Client, Store: c.Store, History: client.NewHistory(c.Store),
		Clock: c.Clock, IDs: c.IDs, Guard: c.Guard, Engines: c.SearchEngines, Node: c.Node,
		Boot: c.Boot, Plans: s.plans, Logger: c.Logger}
}

// uploads makes the resource that accepts files.
func (s *Server) uploads() uploads.Resource {
	c := &s.config
	return uploads.Resource{Client: c.Client, Store: c.Store, Blobs: c.Blobs, Clock: c.Clock,
		IDs: c.IDs, Plans: s.plans, Node: c.Node, Boot: c.Boot}
}

// rows makes the resource that reads rows.
func (s *Server) rows() data.Resource {
	c := &s.config
	return data.Resource{Client: c.Client, Store: c.Store, Records: c.Store, IDs: c.IDs,
		History: client.NewHistory(c.Store), Plans: s.plans, Blobs: c.Blobs, Clock: c.Clock,
		Bodies: bodies.NewCodec(), Diffs: diff.NewKept(c.Clock), Ahead: data.NewAhead(c.Clock),
		Dir: c.DataDir, Disk: c.Disk}
}

// KeptExports is a kind of background work: it writes kept exports. It calls point at named places,
// so that tests can end the process there. point may be nil.
func (s *Server) KeptExports(point func(name string)) work.Kind {
	if point == nil {
		point = func(string) {}
	}
	return s.rows().Keeping(point)
}

// Changes is a kind of background work: it tells what changed from run to run. It calls point at
// named places, so that tests can end the process there. point may be nil.
func (s *Server) Changes(point func(name string)) work.Kind {
	c := &s.config
	return changes.Kind(changes.Config{Client: c.Client, Store: c.Store,
		History: client.NewHistory(c.Store), Point: point})
}

// Harvests is a kind of background work: it reads sitemaps. sender is the egress client. hostRate
// is how many requests a second a host gets. It calls point at named places, so that tests can end
// the process there. point may be nil.
func (s *Server) Harvests(sender HarvestSender, hostRate float64,
	point func(name string)) work.Kind {
	c := &s.config
	return harvest.Kind(harvest.Config{Client: c.Client, Store: c.Store, Sender: sender,
		Reader: c.Reader, HostRate: hostRate, Clock: c.Clock, IDs: c.IDs, Point: point})
}

// HarvestSender makes one HTTP exchange.
type HarvestSender = harvest.Sender

// DueRuns is a kind of background work: it launches runs that are due. It calls point at named
// places, so that tests can end the process there. point may be nil.
func (s *Server) DueRuns(point func(name string)) work.Kind {
	return launch.Due(launch.DueConfig{Launcher: s.launcher(), Point: point})
}
