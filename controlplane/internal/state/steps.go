package state

// StepsSince is the first cluster version that records customers' first steps.
const StepsSince = 2

// Steps says how far a customer has come since it signed up. Deleted things still count.
type Steps struct {
	Scraper bool // it has made one
	Run     bool // it has launched one; samples and previews do not count
	TopUps  int  // paid and credited; 2: two or more
}

// maxSteps is the highest count of top-ups.
const maxSteps = 2

// Steps returns a customer's steps. For the time before they were recorded it uses what the state
// has: scrapers and runs.
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

// came records a customer's first step of a kind.
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
