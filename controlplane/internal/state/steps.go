package state

// StepsSince is the first cluster version in which customers note what they have come to.
const StepsSince = 2

// Steps are how far a customer has come since it signed up. What it has deleted since counts.
type Steps struct {
	Scraper bool // it has made one
	Run     bool // it has launched one, samples and previews apart
	TopUps  int  // that were paid and credited; 2: or more
}

// maxSteps is how many top-ups are told apart.
const maxSteps = 2

// Steps are those of a customer. What a customer did before it was noted is known by what the state
// has: its scrapers, and the newest runs, which never leave it.
func (v *View) Steps(c *Customer) Steps {
	steps := Steps{Run: c.Ran || v.ran(c.Ref)}
	steps.Scraper = c.Made || steps.Run || v.made(c.Ref)
	topUpsTable.each(v, false, func(*TopUp) bool {
		steps.TopUps++
		return steps.TopUps < maxSteps
	}, "applied", c.Ref)
	return steps
}

func (v *View) made(customer string) (found bool) {
	for _, group := range v.Groups(customer) {
		found = found || group.Scrapers > 0
	}
	return found
}

func (v *View) ran(customer string) (found bool) {
	v.CustomerJobs(customer, func(job *Job) bool {
		found = !job.Unlisted()
		return !found
	})
	return found
}

// came notes once that a customer has come to something.
func (t *Tx) came(customer string, did func(*Customer) *bool) {
	known := t.Customer(customer)
	if known == nil || t.ClusterVersion() < StepsSince || *did(known) {
		return
	}
	next := *known
	*did(&next) = true
	t.PutCustomer(&next)
}

func made(c *Customer) *bool { return &c.Made }

func ran(c *Customer) *bool { return &c.Ran }
