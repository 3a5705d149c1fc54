package telemetry

import "sync/atomic"

// Floor is how much of a disk is to stay free, in bytes. A disk with less counts as short until an
// eighth more than the floor is free, so that it does not go back and forth. It is safe for
// concurrent use.
type Floor struct {
	bytes uint64
	short atomic.Bool
}

// NewFloor makes the floor of one disk; one of 0 bytes is never reached.
func NewFloor(bytes uint64) *Floor { return &Floor{bytes: bytes} }

// Bytes is how many stay free; 0 of a nil floor.
func (f *Floor) Bytes() uint64 {
	if f == nil {
		return 0
	}
	return f.bytes
}

// Above says whether a disk with so many bytes free has room, by what it had before.
func (f *Floor) Above(free uint64) bool {
	switch {
	case free < f.bytes:
		f.short.Store(true)
	case free >= f.bytes+f.bytes/8:
		f.short.Store(false)
	}
	return !f.short.Load()
}

// Short is what Above said last, the other way round.
func (f *Floor) Short() bool { return f.short.Load() }

// Disk watches the file system of a directory. Its fields are set before its first use.
type Disk struct {
	Dir string
	// Free is how many bytes are left there, where that is known; nil: FreeSpace.
	Free  func(dir string) (bytes uint64, known bool)
	Floor *Floor // nil: it is never short
}

// Left is how many bytes the disk has left, where that is known.
func (d *Disk) Left() (bytes uint64, known bool) {
	if d.Free == nil {
		return FreeSpace(d.Dir)
	}
	return d.Free(d.Dir)
}

// Short says whether the disk has less than its floor. One of which nothing is known has room.
func (d *Disk) Short() bool {
	if d == nil || d.Floor == nil {
		return false
	}
	free, known := d.Left()
	return known && !d.Floor.Above(free)
}
