package frontier

import "shoal.dev/shoal/pkg/ids"

// customer, job and queue order the turns over all hosts. Customers take turns, then their runs,
// then the hosts of each run. They are listed while something of theirs may be ready, and removed
// only when their turn finds nothing. So leaving and returning before then gains no earlier turn.
// New ones come first.
type customer struct {
	name    string
	jobs    int            // with items or a turn
	running int            // items
	bytes   int64          // see Weigh
	ready   list[job]      // next turn first
	node    node[customer] // in Frontier.turns
}

// shareOfFree bounds a customer's running items: this many times the free places. One customer
// alone can have eight of nine places, two can have eight of seventeen each. So another customer
// always finds a place, however long items run. (Choudhury and Hahne, "Dynamic queue length
// thresholds for shared-memory packet switches", 1998.)
const shareOfFree = 8

// mayStart says whether another item of a customer may start now.
func (f *Frontier) mayStart(c *customer) bool { return !f.rests(c) && f.hasPlace(c) }

// hasPlace says whether there is a place for another item of a customer. The last free place is for
// customers with nothing running, however few there are.
func (f *Frontier) hasPlace(c *customer) bool {
	free := f.most - f.runs
	return f.most <= 0 || c.running == 0 && free > 0 ||
		free > 1 && c.running < shareOfFree*free
}

// Fractions of the bytes that may be held.
const (
	shareOfBytes = 4  // most that one customer may hold while there is room
	leastOfBytes = 64 // and that one may always hold
)

// rests says whether a customer holds so many bytes that nothing more of theirs starts.
func (f *Frontier) rests(c *customer) bool {
	return f.mostBytes > 0 && (c.bytes > f.mostBytes/shareOfBytes ||
		f.bytes >= f.mostBytes && c.bytes > f.mostBytes/leastOfBytes)
}

// Rests says whether a customer holds so many bytes that nothing more of theirs starts.
func (f *Frontier) Rests(name string) bool {
	c := f.customers[name]
	return c != nil && f.rests(c)
}

// Weigh adds bytes that a customer's items hold; negative bytes are given back.
func (f *Frontier) Weigh(name string, bytes int64) {
	c := f.customerOf(name)
	before := c.bytes
	c.bytes += bytes
	share, least := f.mostBytes/shareOfBytes, f.mostBytes/leastOfBytes
	f.bytes += min(c.bytes, share) - min(before, share)
	f.beyond += max(c.bytes-least, 0) - max(before-least, 0)
	f.forgetCustomer(c)
}

// Beyond returns the bytes that customers hold beyond what each may always hold. Others need not
// wait for them: large pages that are slow to read may be held for long.
func (f *Frontier) Beyond() int64 { return f.beyond }

type job struct {
	id       ids.ID
	customer *customer
	queues   int         // number of its queues
	ready    list[queue] // next turn first
	node     node[job]   // in customer.ready
}

// queue holds the waiting items of one run at one host, in order.
type queue struct {
	job   *job
	host  *host
	share *share
	items list[Item]
	// notBefore is when the run's pace allows its next start here.
	notBefore int64
	turn      node[queue] // in share.queues
	listed    node[queue] // in job.ready
}

// share is one customer's part in the turns at one host.
type share struct {
	customer *customer
	queues   list[queue] // next turn first
	node     node[share] // in host.shares
}

type queueKey struct {
	job  *job
	host *host
}

type shareKey struct {
	customer *customer
	host     *host
}

func (q *queue) pace() Pace { return q.items.front().Pace }

// queueOf returns the item's queue, and makes it if necessary.
func (f *Frontier) queueOf(it *Item) *queue { return f.queueAt(f.jobOf(it), f.hostOf(it.Host)) }

// queueAt returns a run's queue at a host, and makes it if necessary. A queue is dropped only once
// the pace of its last start is over.
func (f *Frontier) queueAt(j *job, h *host) *queue {
	key := queueKey{j, h}
	if q := f.queues[key]; q != nil {
		return q
	}
	s := f.shares[shareKey{j.customer, h}]
	if s == nil {
		s = &share{customer: j.customer}
		s.node.value = s
		f.shares[shareKey{j.customer, h}] = s
		h.shares.pushFront(&s.node)
	}
	q := &queue{job: j, host: h, share: s}
	q.turn.value, q.listed.value = q, q
	f.queues[key] = q
	s.queues.pushFront(&q.turn)
	j.queues++
	return q
}

func (f *Frontier) jobOf(it *Item) *job {
	if j := f.jobs[it.Job]; j != nil {
		return j
	}
	c := f.customerOf(it.Customer)
	c.jobs++
	j := &job{id: it.Job, customer: c}
	j.node.value = j
	f.jobs[it.Job] = j
	return j
}

func (f *Frontier) customerOf(name string) *customer {
	c := f.customers[name]
	if c == nil {
		c = &customer{name: name}
		c.node.value = c
		f.customers[name] = c
	}
	return c
}

// dropQueue drops an empty queue.
func (f *Frontier) dropQueue(q *queue) {
	q.share.queues.remove(&q.turn)
	q.job.ready.remove(&q.listed)
	delete(f.queues, queueKey{q.job, q.host})
	q.job.queues--
	f.forget(q.job)
}

// forget drops a run without queues and turn, and then its customer likewise.
func (f *Frontier) forget(j *job) {
	if j.queues > 0 || j.node.in != nil {
		return
	}
	delete(f.jobs, j.id)
	j.customer.jobs--
	f.forgetCustomer(j.customer)
}

func (f *Frontier) forgetCustomer(c *customer) {
	if c.jobs == 0 && c.running == 0 && c.bytes == 0 && c.node.in == nil {
		delete(f.customers, c.name)
	}
}

// list puts a queue with an item at a ready host into the turns. A queue with an open connection
// goes before the run's other hosts, which limits open connections.
func (f *Frontier) list(q *queue) {
	j, c := q.job, q.job.customer
	switch first := q.items.front(); {
	case first != nil && first.Open:
		j.ready.remove(&q.listed)
		j.ready.pushFront(&q.listed)
	case q.listed.in != nil:
		return
	default:
		j.ready.pushBack(&q.listed)
	}
	if j.node.in == nil {
		c.ready.pushFront(&j.node)
	}
	if c.node.in == nil {
		f.turns.pushFront(&c.node)
	}
}

// front returns the queue whose turn it is over all hosts, nil if nothing may start. Customers that
// may start nothing keep their turns. They are few: each has several items running.
func (f *Frontier) front() *queue {
	for n := f.turns.first; n != nil; {
		c := n.value
		n = n.next
		if !f.mayStart(c) {
			continue
		}
		for j := c.ready.front(); j != nil; j = c.ready.front() {
			for q := j.ready.front(); q != nil; q = j.ready.front() {
				if q.host.ready && q.items.front() != nil {
					return q
				}
				j.ready.remove(&q.listed)
			}
			c.ready.remove(&j.node)
			f.forget(j)
		}
		f.turns.remove(&c.node)
		f.forgetCustomer(c)
	}
	return nil
}

// pass ends a queue's turn.
func (f *Frontier) pass(q *queue) {
	j, c := q.job, q.job.customer
	j.ready.toBack(&q.listed)
	c.ready.toBack(&j.node)
	f.turns.toBack(&c.node)
}
