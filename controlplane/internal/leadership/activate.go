package leadership

import (
	"context"
	"slices"
	"strings"
	"time"

	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/pkg/clock"
)

// activateEvery is how often it is looked whether all members can apply the next version.
const activateEvery = 5 * time.Second

// activateVersion raises the cluster's version to this binary's, once every server of Raft and
// every registered node can apply it. A node that is gone and registered holds it up: it may come
// back with the binary that it had.
func (l *Leadership) activateVersion(ctx context.Context) error {
	told := ""
	for {
		active := l.view().ClusterVersion()
		if active >= l.node.Newest() {
			<-ctx.Done() // another binary's leadership goes on from here
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

// raiseVersion activates a version unless some members are behind, whom it names.
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

// behindVersion are the members that do not say that they can apply a version.
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
