package fsm

import (
	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/controlplane/internal/state"
	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
)

func createCluster(tx *state.Tx, p command.CreateClusterPayload) (command.None, error) {
	if tx.Cluster() != nil {
		return command.None{}, nil
	}
	tx.PutCluster(&state.Cluster{ID: p.ID, Shards: p.Shards, FreeGrant: p.FreeGrant,
		CreatedAt: tx.Now, HashSecret: p.HashSecret,
		Log: p.Log, Rows: p.Rows, Version: p.Version})
	tx.PutPrices(&state.PriceTable{Version: 1, Rows: p.Prices})
	for number := range p.Shards {
		tx.PutShard(&state.Shard{Number: number})
	}
	return command.None{}, nil
}

func activateVersion(tx *state.Tx, p command.ActivateVersionPayload) (command.None, error) {
	if known := tx.Cluster(); known != nil && p.Version > known.Version {
		raised := *known
		raised.Version = p.Version
		if known.Version < state.RestsSince {
			raised.RestsFrom = tx.Now
		}
		tx.PutCluster(&raised)
	}
	return command.None{}, nil
}

// errShort refuses new data while there is too little disk space.
func errShort() error {
	return fault.New(fault.OutOfSpace, "the service has too little disk space to take in anything "+
		"new; what is under way waits. Try again later")
}

func noteSpace(tx *state.Tx, p command.NoteSpacePayload) (command.None, error) {
	if len(p.Short) > command.MaxShortBytes {
		return command.None{}, fault.Invalid(fault.InvalidRequest, "short", "at most %d bytes",
			command.MaxShortBytes)
	}
	if known := tx.Cluster(); known != nil && known.Short != p.Short {
		noted := *known
		noted.Short = p.Short
		tx.PutCluster(&noted)
	}
	return command.None{}, nil
}

func registerNode(tx *state.Tx, p command.RegisterNodePayload) (command.None, error) {
	if err := bindServices(tx, p); err != nil {
		return command.None{}, err
	}
	for _, c := range tx.ClaimsUnderWay(p.Name) {
		if c.Boot != p.Boot {
			dropClaim(tx, c) // its caller died with the process
		}
	}
	freeWork(tx, p.Name, p.Boot)
	earlier := tx.Node(p.Name)
	tx.PutNode(&state.Node{Name: p.Name, Boot: p.Boot, Roles: p.Roles, Address: p.Address,
		Version:  p.Version,
		Capacity: p.Capacity, Tiers: p.Tiers, JoinedAt: tx.Now, Draining: earlier != nil &&
			earlier.Draining})
	return command.None{}, nil
}

// bindServices refuses a node with other services than the cluster's. The first node that names its
// services sets the cluster's.
func bindServices(tx *state.Tx, p command.RegisterNodePayload) error {
	current := tx.Cluster()
	if current == nil {
		return nil
	}
	cluster := *current
	for _, service := range []struct {
		what       string
		own, bound *string
	}{{"log", &p.Log, &cluster.Log}, {"row store", &p.Rows, &cluster.Rows}} {
		switch {
		case *service.own == "":
		case *service.bound == "" || p.Rebind:
			*service.bound = *service.own
		case *service.own != *service.bound:
			return fault.New(fault.OtherServices, "node %q works on another %s (%s) than the "+
				"cluster (%s)", p.Name,
				service.what, *service.own, *service.bound)
		}
	}
	if cluster.Log != current.Log || cluster.Rows != current.Rows {
		tx.PutCluster(&cluster)
	}
	return nil
}

func drainNode(tx *state.Tx, p command.DrainNodePayload) (command.None, error) {
	node := tx.Node(p.Name)
	if node == nil {
		return command.None{}, fault.New(fault.NotFound, "there is no node %q", p.Name)
	}
	changed := *node
	changed.Draining = p.Draining
	tx.PutNode(&changed)
	return command.None{}, nil
}

func removeNode(tx *state.Tx, p command.RemoveNodePayload) (command.None, error) {
	if node := tx.Node(p.Name); node != nil && node.Boot == p.Boot {
		freeWork(tx, p.Name, ids.ID{})
		tx.RemoveNode(node)
	}
	return command.None{}, nil
}

func assignShards(tx *state.Tx, p command.AssignShardsPayload) (command.None, error) {
	for _, change := range p.Changes {
		shard := tx.Shard(change.Number)
		if shard == nil || shard.Epoch != change.Epoch {
			continue
		}
		changed := *shard
		changed.Next = change.Next
		if change.Owner != shard.Owner {
			changed.Owner = change.Owner
			changed.Epoch++
			if change.Planned {
				changed.Moved = tx.LastDispatch()
			}
		}
		tx.PutShard(&changed)
	}
	return command.None{}, nil
}

func putPrices(tx *state.Tx, p command.PutPricesPayload) (state.PriceTable, error) {
	current := tx.CurrentPrices()
	if current == nil {
		return state.PriceTable{}, fault.New(fault.Unavailable, "the cluster has not "+
			"been created yet")
	}
	if p.Version != 0 && p.Version != current.Version {
		return state.PriceTable{}, fault.Invalid(fault.PricesChanged, "version",
			"the prices are of version %d now", current.Version)
	}
	return tx.AddPrices(state.PriceTable{Rows: p.Rows}), nil
}
