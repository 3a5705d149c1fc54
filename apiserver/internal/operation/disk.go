package operation

// Disk is disk space in which an answer is built before it is sent. What is taken counts as the
// customer's until Close.
type Disk struct {
	dir      string
	customer string
	spools   *spools
	free     func() (uint64, bool)
	taken    int64
}

func (x *exchange) disk() *Disk {
	free, dir := x.free, x.SpoolDir
	return &Disk{dir: dir, customer: x.from.Customer, spools: &x.spools,
		free: func() (uint64, bool) { return free(dir) }}
}

// Dir is the folder for the answer's files; "": the system's temporary folder. The files are
// unnamed, or their makers remove them.
func (d *Disk) Dir() string { return d.dir }

// TakeRoom reserves this many bytes. Its fault is unavailable.
func (d *Disk) TakeRoom(bytes int64) error {
	if err := d.spools.takeBytes(d.customer, bytes, d.free); err != nil {
		return err
	}
	d.taken += bytes
	return nil
}

// Close gives back what was taken. Call it once, when the files are gone.
func (d *Disk) Close() { d.spools.leave(d.customer, d.taken) }
