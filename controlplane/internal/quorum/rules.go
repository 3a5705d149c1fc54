package quorum

// Each rule returns at most one change. Next asks them in order.

// forget removes a voter that has lost its log. The remaining voters agree to the removal, so the
// votes that it forgot no longer count.
func (p *Planner) forget(v *view) Change {
	for _, member := range v.Members {
		if asksIn(v, member) && v.servers[member.Name].Voter && p.outlives(v, member.Name) {
			return Change{Kind: Remove, Name: member.Name, Why: "it has lost its log"}
		}
	}
	return Change{}
}

// admit admits nodes without a log and a vote. They must be reachable for that, and some never are.
// So it is the last rule, and starts with the node that was tried longest ago.
func (p *Planner) admit(v *view) Change {
	var next *Member
	for i := range v.Members {
		member := &v.Members[i]
		tried := p.nodes[member.Name].admitted
		if !asksIn(v, *member) || v.servers[member.Name].Voter || !tried.IsZero() &&
			v.Now.Sub(tried) < p.config.Contact {
			continue // it was tried just now and may not have heard yet
		}
		if next == nil || tried.Before(p.nodes[next.Name].admitted) {
			next = member
		}
	}
	if next == nil {
		return Change{}
	}
	p.nodes[next.Name].admitted = v.Now
	return Change{Kind: Admit, Name: next.Name, Address: next.Address, Boot: next.Boot,
		Why: "it has no log"}
}

// asksIn says whether a node without a log asks to take part.
func asksIn(v *view, member Member) bool {
	return member.Empty && !member.Leaving && member.Address != "" && member.Name != v.Leader
}

// address updates the address of a node that came back at another one. Raft allows each address
// once, so a server that still has it loses it first.
func (p *Planner) address(v *view) Change {
	for _, server := range v.Servers {
		member, here := v.members[server.Name]
		if !here || member.Address == server.Address || member.Address == "" {
			continue
		}
		if holder, held := p.holder(v, member); held {
			if change := p.unseat(v, holder); change.Kind != "" {
				return change
			}
			continue
		}
		return readdress(server, member.Address, "it came back with another address")
	}
	return Change{}
}

func readdress(server Server, address, why string) Change {
	kind := Add
	if server.Voter {
		kind = Readdr
	}
	return Change{Kind: kind, Name: server.Name, Address: address, Why: why}
}

// holder returns the other server that has a member's address in Raft's configuration.
func (p *Planner) holder(v *view, member Member) (Server, bool) {
	for _, server := range v.Servers {
		if server.Name != member.Name && server.Address == member.Address {
			return server, true
		}
	}
	return Server{}, false
}

// unseat takes an address from a server that no longer uses it. Until that server reports a new
// one, it has a placeholder address.
func (p *Planner) unseat(v *view, holder Server) Change {
	member, here := v.members[holder.Name]
	if holder.Name == v.Leader || (here && member.Address == holder.Address) {
		return Change{} // two nodes claim one address: only people can settle this mistake
	}
	return readdress(holder, holder.Name+".moved.invalid:0", "another node has its address now")
}

// leave removes nodes that ask to leave.
func (p *Planner) leave(v *view) Change {
	for _, server := range v.Servers {
		if !v.members[server.Name].Leaving || server.Name == v.Leader {
			continue
		}
		if !server.Voter || p.outlives(v, server.Name) {
			return Change{Kind: Remove, Name: server.Name, Why: "it leaves"}
		}
	}
	return Change{}
}

// removeVoter removes voters that are gone.
func (p *Planner) removeVoter(v *view) Change {
	for _, name := range v.voters {
		if name == v.Leader || !p.outlives(v, name) {
			continue
		}
		switch {
		case p.dismissed(v, name):
			return Change{Kind: Remove, Name: name, Why: "it is gone and not registered"}
		case p.gone(v, name, p.config.VoterGrace) && len(v.voters) > p.config.MinVoters:
			return Change{Kind: Remove, Name: name, Why: "it has been gone for long"}
		}
	}
	return Change{}
}

func (p *Planner) removeNonvoter(v *view) Change {
	for _, server := range v.Servers {
		switch {
		case server.Voter:
		case p.dismissed(v, server.Name):
			return Change{Kind: Remove, Name: server.Name, Why: "it is gone and not registered"}
		case p.gone(v, server.Name, p.config.NonvoterGrace):
			return Change{Kind: Remove, Name: server.Name, Why: "it has been gone for long"}
		}
	}
	return Change{}
}

// retire removes the records of nodes that have left. A lost node stays listed until it comes back
// or an operator removes it: somebody should notice that it is missing.
func (p *Planner) retire(v *view) Change {
	for _, name := range v.Registered {
		if _, counted := v.servers[name]; counted || name == v.Leader {
			continue
		}
		if p.nodes[name].leaves {
			return Change{Kind: Retire, Name: name, Why: "it has left the cluster"}
		}
	}
	return Change{}
}

// add adds members to Raft.
func (p *Planner) add(v *view) Change {
	for _, member := range v.Members {
		if _, counted := v.servers[member.Name]; counted || member.Leaving || member.Empty ||
			member.Address == "" {
			continue
		}
		if holder, held := p.holder(v, member); held {
			if change := p.unseat(v, holder); change.Kind != "" {
				return change
			}
			continue
		}
		return Change{Kind: Add, Name: member.Name, Address: member.Address, Why: "it joins"}
	}
	return Change{}
}

// demote takes votes from nodes that are not of the control plane, and from a surplus voter.
func (p *Planner) demote(v *view) Change {
	if len(v.voters) <= p.config.MinVoters {
		return Change{}
	}
	excess := len(v.voters)-p.lostVoters(v) > p.target(v)
	for i := len(v.voters) - 1; i >= 0; i-- {
		name := v.voters[i]
		member, here := v.members[name]
		if name == v.Leader || !here || !p.answers(v, name) || !p.outlives(v, name) {
			continue
		}
		switch {
		case !member.ControlPlane:
			return Change{Kind: Demote, Name: name, Why: "it is not of the control plane"}
		case excess:
			return Change{Kind: Demote, Name: name, Why: "an odd number of voters is better"}
		}
	}
	return Change{}
}

// promote gives a vote to a node of the control plane that has kept up for a while.
func (p *Planner) promote(v *view) Change {
	voters := len(v.voters) - p.lostVoters(v)
	if voters >= p.target(v) {
		return Change{}
	}
	var ready []string
	for _, member := range v.Members {
		server, counted := v.servers[member.Name]
		settling := p.nodes[member.Name].settling
		if counted && !server.Voter && member.ControlPlane && !member.Leaving &&
			v.registered[member.Name] &&
			server.Address == member.Address && !settling.IsZero() &&
			v.Now.Sub(settling) >= p.config.Settle {
			ready = append(ready, member.Name)
		}
	}
	even := (voters+1)%2 == 0
	if len(ready) == 0 || (even && len(ready) < 2) || v.answering+1 <= (len(v.voters)+1)/2 {
		return Change{} // an even number of voters is only a transition
	}
	return Change{Kind: Promote, Name: ready[0], Address: v.servers[ready[0]].Address,
		Why: "it has kept up"}
}

func (p *Planner) lostVoters(v *view) int {
	lost := 0
	for _, name := range v.voters {
		if p.lost(v, name) {
			lost++
		}
	}
	return lost
}

// target returns how many voters the nodes that are not lost allow: odd, and at most MaxVoters.
func (p *Planner) target(v *view) int {
	able := 0
	for _, member := range v.Members {
		if member.ControlPlane && !member.Leaving {
			able++
		}
	}
	for _, name := range v.voters { // probably restarting
		if _, here := v.members[name]; !here && !p.lost(v, name) {
			able++
		}
	}
	able = min(able, p.config.MaxVoters)
	return max(able-(able+1)%2, 1)
}
