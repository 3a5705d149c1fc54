package telemetry

import (
	"time"
)

// Node is what a process exports about itself in every scrape.
type Node struct {
	Name    string
	Roles   []string
	Version string
	Disk    *Disk // the watched disk; nil: none
	// CertificateExpires is when the node's identity expires; zero: it has none.
	CertificateExpires time.Time
}

// disk is the file system of a directory, in bytes.
type disk struct{ size, free uint64 }

// FreeSpace returns how many bytes a directory's disk has left, if the system tells.
func FreeSpace(dir string) (bytes uint64, known bool) {
	of, known := diskOf(dir)
	return of.free, known
}

// Declare adds the node's own metrics.
func (n Node) Declare(to *Metrics) {
	NewSamples(func() (Node, bool) { return n, true }).
		Gauges("shoal_node_info", "Always 1; the labels are the process's name and version.",
			[]string{"node", "version"},
			func(n Node, emit func(float64, ...string)) { emit(1, n.Name, n.Version) }).
		Gauges("shoal_node_role_info", "1 for each role of the process.", []string{"node", "role"},
			func(n Node, emit func(float64, ...string)) {
				for _, role := range n.Roles {
					emit(1, n.Name, role)
				}
			}).
		Declare(to)
	NewSamples(n.disk).
		Gauge("shoal_node_disk_free_bytes", "Free space on the data directory's file system.",
			func(d disk) float64 { return float64(d.free) }).
		Gauge("shoal_node_disk_size_bytes", "Size of the data directory's file system.",
			func(d disk) float64 { return float64(d.size) }).
		Declare(to)
	NewSamples(func() (float64, bool) {
		if n.Disk == nil || n.Disk.Floor == nil {
			return 0, false
		}
		return float64(n.Disk.Floor.Bytes()), true
	}).
		Gauge("shoal_node_disk_floor_bytes",
			"Space that must stay free on the data directory's file system. With less, no new "+
				"work is accepted.",
			func(bytes float64) float64 { return bytes }).
		Declare(to)
	NewSamples(func() (time.Time, bool) {
		return n.CertificateExpires,
			!n.CertificateExpires.IsZero()
	}).
		Gauge("shoal_node_certificate_expiry_timestamp_seconds",
			"When the node's certificate expires, in Unix time.",
			func(at time.Time) float64 { return float64(at.Unix()) }).
		Declare(to)
}

// disk returns the state of the watched disk.
func (n Node) disk() (of disk, known bool) {
	if n.Disk == nil {
		return of, false
	}
	if of, known = diskOf(n.Disk.Dir); !known {
		return of, false
	}
	of.free, known = n.Disk.Left()
	return of, known
}
