package telemetry

import "sync/atomic"

// Floor is how much of a disk must stay free, in bytes. A disk with less counts as short until an
// eighth more than the floor is free, so that it does not flip back and forth. It is safe for
// concurrent use.
type Floor struct {
	bytes uint64
	short atomic.Bool
}

// NewFloor makes the floor of one disk; a floor of 0 bytes is never reached.
func NewFloor(bytes uint64) *Floor { return &Floor{bytes: bytes} }

// Bytes returns how many bytes must stay free; 0 for a nil floor.
func (f *Floor) Bytes() uint64 {
	if f == nil {
		return 0
	}
	return f.bytes
}

// Above reports whether a disk with that many bytes free has room, given its previous state.
func (f *Floor) Above(free uint64) bool {
	switch {
	case free < f.bytes:
		f.short.Store(true)
	case free >= f.bytes+f.bytes/8:
		f.short.Store(false)
	}
	return !f.short.Load()
}

// Short reports the opposite of Above's last result.
func (f *Floor) Short() bool { return f.short.Load() }

// Disk watches a directory's file system. Set its fields before its first use.
type Disk struct {
	Dir string
	// Free returns how many bytes are left there, if known; nil: FreeSpace.
	Free  func(dir string) (bytes uint64, known bool)
	Floor *Floor // nil: never short
}

// Left returns how many bytes the disk has left, if known.
func (d *Disk) Left() (bytes uint64, known bool) {
	if d.Free == nil {
		return FreeSpace(d.Dir)
	}
	return d.Free(d.Dir)
}

// Short reports whether the disk has less than its floor. A disk in an unknown state has room.
func (d *Disk) Short() bool {
	if d == nil || d.Floor == nil {
		return false
	}
	free, known := d.Left()
	return known && !d.Floor.Above(free)
}
