package operation

// Disk is room for an answer that is put together there before it is sent. What is taken counts as
// the customer's until Close.
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

// Dir is the folder for the answer's files, "" is the system's for temporary ones. They have no
// name, or go with who made them.
func (d *Disk) Dir() string { return d.dir }

// TakeRoom takes room of so many bytes. Its fault is unavailable.
func (d *Disk) TakeRoom(bytes int64) error {
	if err := d.spools.takeBytes(d.customer, bytes, d.free); err != nil {
		return err
	}
	d.taken += bytes
	return nil
}

// Close gives back what was taken. It is called once, when the files are gone.
func (d *Disk) Close() { d.spools.leave(d.customer, d.taken) }
