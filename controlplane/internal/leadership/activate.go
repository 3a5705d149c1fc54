package leadership

import (
	"context"
	"slices"
	"strings"
	"time"

	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/pkg/clock"
)

// activateEvery is how often to check whether all members can apply the next version.
const activateEvery = 5 * time.Second

// activateVersion raises the cluster's version to this binary's once every Raft server and
// registered node can apply it. A registered node that is gone holds it up: it may come back with
// its old binary.
func (l *Leadership) activateVersion(ctx context.Context) error {
	told := ""
	for {
		active := l.view().ClusterVersion()
		if active >= l.node.Newest() {
			<-ctx.Done() // a newer binary's leadership continues from here
			return nil
		}
		behind, err := l.raiseVersion(ctx, l.node.Newest())
		if err != nil {
			return err
		}
		if len(behind) == 0 {
			l.config.Logger.Info("the cluster's version is active: older binaries cannot "+
				"join any more", "version", l.node.Newest())
			continue
		}
		if names := strings.Join(behind, ", "); names != told {
			told = names
			l.config.Logger.Info("the cluster's version waits for nodes of an older one, or "+
				"that do not answer",
				"active", active, "next", l.node.Newest(), "nodes", names)
		}
		if !clock.Pause(ctx, l.config.Clock, activateEvery) {
			return nil
		}
	}
}

// raiseVersion activates a version, or returns the members that are behind.
func (l *Leadership) raiseVersion(ctx context.Context, version uint32) (behind []string,
	err error) {
	l.admission.Lock()
	defer l.admission.Unlock()
	if behind, err = l.behindVersion(ctx, version); err != nil || len(behind) > 0 {
		return behind, err
	}
	_, err = l.propose(ctx, command.ActivateVersionPayload{Version: version})
	return nil, err
}

// behindVersion returns the members that do not report that they can apply a version.
func (l *Leadership) behindVersion(ctx context.Context, version uint32) ([]string, error) {
	servers, _, err := l.node.Servers(ctx)
	if err != nil {
		return nil, err
	}
	ask := map[string]string{}
	for _, node := range l.view().Nodes() {
		ask[node.Name] = node.Address
	}
	for _, server := range servers {
		ask[string(server.ID)] = string(server.Address)
	}
	delete(ask, l.node.Name())
	answers := l.node.Statuses(ctx, ask)
	var behind []string
	for name := range ask {
		if answers[name].Applies < version {
			behind = append(behind, name)
		}
	}
	slices.Sort(behind)
	return behind, ctx.Err()
}
