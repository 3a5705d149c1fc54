package membership

import (
	"log/slog"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/memberlist"
)

// memberlist holds its lock while it calls the methods of this file: they must not call it back.

// says provides what this node gossips.
type says struct{ m *Membership }

// NodeMeta implements memberlist.Delegate.
func (d says) NodeMeta(limit int) []byte {
	d.m.mu.Lock()
	defer d.m.mu.Unlock()
	data, err := encodeInfo(d.m.self)
	if err != nil || len(data) > limit {
		return nil // Open and Update have refused what does not fit
	}
	return data
}

// NotifyMsg, GetBroadcasts, LocalState and MergeRemoteState implement memberlist.Delegate. Nothing
// else is gossiped.
func (says) NotifyMsg([]byte)                {}
func (says) GetBroadcasts(int, int) [][]byte { return nil }
func (says) LocalState(bool) []byte          { return nil }
func (says) MergeRemoteState([]byte, bool)   {}

// events receives memberlist's events about the others.
type events struct{ m *Membership }

// NotifyJoin implements memberlist.EventDelegate.
func (e events) NotifyJoin(node *memberlist.Node) { e.heard(node, "gossip: a node is there") }

// NotifyUpdate implements memberlist.EventDelegate.
func (e events) NotifyUpdate(node *memberlist.Node) { e.heard(node, "") }

// NotifyLeave implements memberlist.EventDelegate.
func (e events) NotifyLeave(node *memberlist.Node) {
	if node.Name != e.m.config.Name {
		e.m.config.Logger.Info("gossip: a node is gone", "member", node.Name, "address",
			addressOf(node))
	}
	e.m.mu.Lock()
	delete(e.m.others, node.Name)
	e.m.rememberGone(node.Name)
	e.m.mu.Unlock()
	e.m.notify()
}

// rememberGone notes that a node is gone, and forgets who has been gone longest. It needs mu.
func (m *Membership) rememberGone(name string) {
	if len(m.gone) == maxGone {
		earlier := func(a, b string) int { return m.gone[a].Compare(m.gone[b]) }
		delete(m.gone, slices.MinFunc(slices.Collect(maps.Keys(m.gone)), earlier))
	}
	m.gone[name] = m.config.Clock.Now()
}

func (e events) heard(node *memberlist.Node, news string) {
	m := e.m
	defer m.notify()
	address := addressOf(node)
	if node.Name == m.config.Name {
		m.mu.Lock()
		m.gossip = address
		m.mu.Unlock()
		return
	}
	info, err := decodeInfo(node.Meta)
	m.mu.Lock()
	own := m.self
	if len(m.others) == 0 { // nobody knows when the others went while this node was alone
		for name := range m.gone {
			m.gone[name] = m.config.Clock.Now()
		}
	}
	m.others[node.Name] = other{Member: Member{Name: node.Name, Gossip: address, Info: info},
		known: err == nil}
	delete(m.gone, node.Name)
	m.mu.Unlock()
	if err != nil {
		m.complain(node.Name, "gossip: a node says what this version does not understand "+
			"and is left out",
			"member", node.Name, "address", address, "error", err)
		return
	}
	if foreign(own, info) {
		m.complain(node.Name, "gossip: a node belongs to ANOTHER CLUSTER OF THE SAME NAME and "+
			"is left out: two were "+
			"founded; stop the nodes of one of them and remove their data directories",
			"member", node.Name, "address", address, "its_cluster", info.Cluster, "this_cluster",
			own.Cluster)
		return
	}
	if news != "" {
		m.config.Logger.Info(news, "member", node.Name, "address", address, "roles", info.Roles,
			"version", info.Version)
	}
}

// conflicts is told of two nodes with the same name. The first one stays.
type conflicts struct{ m *Membership }

// NotifyConflict implements memberlist.ConflictDelegate.
func (c conflicts) NotifyConflict(existing, other *memberlist.Node) {
	text := "gossip: two nodes have the same name; the second is refused until the first is gone"
	if existing.Name == c.m.config.Name {
		text = "gossip: another node has the name of this one; one of them uses a copy of the " +
			"other's identity"
	}
	c.m.complain(existing.Name, text, "member", existing.Name, "first", addressOf(existing),
		"second", addressOf(other))
}

// complain logs an error about a name, at most once per complaints.
func (m *Membership) complain(name, text string, args ...any) {
	now := m.config.Clock.Now()
	m.mu.Lock()
	last, before := m.grudges[name]
	due := !before || now.Sub(last) >= complaints
	if due {
		for other, at := range m.grudges {
			if now.Sub(at) >= complaints {
				delete(m.grudges, other)
			}
		}
		m.grudges[name] = now
	}
	m.mu.Unlock()
	if due {
		m.config.Logger.Error(text, args...)
	}
}

// lines passes memberlist's log on. Its warnings (lost packets, suspicions) are routine.
type lines struct{ to *slog.Logger }

// Write takes one line.
func (l lines) Write(line []byte) (int, error) {
	text := strings.TrimSpace(string(line))
	if after, isError := strings.CutPrefix(text, "[ERR] "); isError {
		l.to.Warn("gossip: " + strings.TrimPrefix(after, "memberlist: "))
	} else {
		l.to.Debug(text)
	}
	return len(line), nil
}
