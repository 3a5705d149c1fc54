package service

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Args returns the `shoal serve` flags for the same configuration, without the services.
func (c *Config) Args() []string {
	args := []string{"serve", "--data", c.Data, "--roles", strings.Join(c.Roles, ","),
		"--identity", c.Cluster.Identity, "--cluster-listen", c.Cluster.Listen, "--gossip-listen",
		c.Cluster.GossipListen,
		"--advertise", c.Cluster.Advertise, "--join", strings.Join(c.Cluster.Join, ","),
		"--capacity", strconv.FormatUint(uint64(c.Cluster.Capacity), 10), "--ops-listen",
		c.OpsListen,
		"--host-rate", fmt.Sprint(c.HostRate), "--host-connections",
		strconv.Itoa(c.HostConnections),
		"--max-host-rate", fmt.Sprint(c.MaxHostRate), "--max-host-connections",
		strconv.Itoa(c.MaxHostConnections),
		// explicit, whatever the environment says
		"--rebind-services=" + strconv.FormatBool(c.RebindServices),
	}
	if c.Listen != "" {
		args = append(args, "--listen", c.Listen)
	}
	if c.Cluster.Bootstrap {
		args = append(args, "--bootstrap")
	}
	if c.SelfKey {
		args = append(args, "--self-key")
	}
	for _, prefix := range c.EgressAllow {
		args = append(args, "--egress-allow", prefix.String())
	}
	for _, host := range slices.Sorted(maps.Keys(c.Origins)) {
		args = append(args, "--egress-origin", host+"="+c.Origins[host])
	}
	return args
}
