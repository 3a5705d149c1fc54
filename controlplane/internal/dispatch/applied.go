package dispatch

import (
	"slices"

	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/model"
)

// Applied tells the dispatcher what a command did, and which runs it ended. As the state machine's
// observer it sees every command, in order.
func (d *Dispatcher) Applied(payload command.Payload, result any, ended []ids.ID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.applied(payload, result)
	for _, job := range ended {
		d.end(d.runs[job])
	}
}

func (d *Dispatcher) applied(payload command.Payload, result any) {
	switch p := payload.(type) {
	case command.LaunchRunPayload:
		if job := d.config.View().Job(p.Job); job != nil && d.runs[p.Job] == nil {
			r := d.addRun(job)
			r.launch, r.trace = p.Trace, p.Trace
		}
	case command.LaunchRunsPayload:
		for _, launched := range resultOf[command.LaunchRunsPayload](result).Jobs {
			job := d.config.View().Job(launched.Job)
			if job != nil && d.runs[job.ID] == nil {
				d.addRun(job)
			}
		}
	case command.ExtendWindowPayload:
		d.extended(p, resultOf[command.ExtendWindowPayload](result))
	case command.RedispatchPayload:
		window := resultOf[command.RedispatchPayload](result)
		for _, grant := range window.Grants {
			d.sendAgain(grant)
		}
		d.gone(window.Gone)
	case command.SettlePayload:
		d.gone(resultOf[command.SettlePayload](result).Gone)
	case command.AdjustWalletPayload:
		d.feedCustomer(d.byRef[p.Customer])
	case command.PayTopUpPayload:
		d.feedCustomer(d.byRef[resultOf[command.PayTopUpPayload](result).TopUp.Customer])
	case command.ReverseTopUpPayload: // a dispute may have been won
		paid := d.config.View().TopUpOf(resultOf[command.ReverseTopUpPayload](result).Payment)
		if paid != nil {
			d.feedCustomer(d.byRef[paid.Customer])
		}
	case command.PutSettingsPayload: // billing may have been switched off
		for _, c := range d.customers {
			d.feedCustomer(c)
		}
	case command.CloseRunPayload:
		if job := d.config.View().Job(p.Job); job == nil || job.Closed {
			d.drop(p.Job)
		}
	}
}

// resultOf returns the result of a command that was just applied.
func resultOf[P command.Of[R], R any](value any) R {
	result, err := command.ResultOf[P](value)
	if err != nil {
		panic(err) // a bug: the state machine returns the declared type
	}
	return result
}

// extended moves picked seqs to where the command put them.
func (d *Dispatcher) extended(p command.ExtendWindowPayload, window command.Window) {
	for _, grant := range window.Grants {
		r := d.runs[grant.Job]
		if r == nil {
			continue
		}
		l, picked := r.picked[grant.Seq]
		if !picked {
			if l, picked = d.pickAside(r, grant.Seq); !picked {
				d.adopt(r, grant)
				continue
			}
		}
		delete(r.picked, grant.Seq)
		o := &outSeq{grant: grant, url: l.url, host: l.host, trace: r.traceOf(grant.Seq)}
		r.outs[grant.Seq] = o
		s := &d.shards[l.host.shard]
		s.outs[command.DispatchRef{Job: grant.Job, Seq: grant.Seq}] = o
		s.unsent = append(s.unsent, o)
	}
	for _, refused := range window.Refused {
		r := d.runs[refused.Job]
		if r == nil {
			continue
		}
		r.starved = true
		if l, picked := r.picked[refused.Seq]; picked {
			delete(r.picked, refused.Seq)
			d.out--
			d.setAside(r, l.host, refused.Seq)
			d.left(l.host, false)
		}
	}
	for _, want := range p.Runs {
		r := d.runs[want.Job]
		if r == nil {
			continue
		}
		for _, seq := range want.Seqs { // ignored: closed, or of a run that ended meanwhile
			if l, picked := r.picked[seq]; picked {
				delete(r.picked, seq)
				d.out--
				d.left(l.host, false)
			}
		}
	}
}

// sendAgain queues a lost dispatch again, under its new number.
func (d *Dispatcher) sendAgain(grant command.Grant) {
	r := d.runs[grant.Job]
	if r == nil || r.outs[grant.Seq] == nil {
		return
	}
	o := r.outs[grant.Seq]
	if o.unread {
		d.recall(o)
	}
	o.grant, o.isSent, o.sent = grant, false, 0
	if o.host != nil {
		s := &d.shards[o.host.shard]
		s.unsent = append(s.unsent, o)
	}
}

// gone removes seqs that are no longer out. Money may have come back to their customers.
func (d *Dispatcher) gone(refs []command.SeqRef) {
	for _, ref := range refs {
		r := d.runs[ref.Job]
		if r == nil {
			continue
		}
		o := r.outs[ref.Seq]
		if o == nil {
			continue
		}
		if o.unread {
			d.recall(o)
		}
		delete(r.outs, ref.Seq)
		d.out--
		d.feedCustomer(r.customer)
		if ref.Closed {
			r.closed++
		}
		if o.host == nil {
			continue // not located yet: the reader of the list will reach it
		}
		delete(d.shards[o.host.shard].outs, command.DispatchRef{Job: ref.Job, Seq: ref.Seq})
		if !ref.Closed && !r.ended && ref.Seq < r.scanned { // the list's reader will not reach it
			d.setAside(r, o.host, ref.Seq)
		}
		d.left(o.host, true)
	}
}

func (d *Dispatcher) feedCustomer(c *customer) {
	if c == nil {
		return
	}
	for _, r := range c.runs {
		r.starved = false
	}
}

// end drops everything of a run that would go out next.
func (d *Dispatcher) end(r *run) {
	if r == nil || r.ended {
		return
	}
	r.ended = true
	r.buffer, r.ready = nil, nil
	for h, w := range r.aside {
		d.aside -= int(w.seqs.GetCardinality())
		h.forget(r)
		if h.out == 0 && len(h.waiting) == 0 {
			delete(d.hosts, h.name)
		}
	}
	r.aside = nil
}

func (d *Dispatcher) drop(job ids.ID) {
	r := d.runs[job]
	if r == nil {
		return
	}
	d.end(r)
	delete(d.runs, job)
	c := r.customer
	c.runs = slices.DeleteFunc(c.runs, func(other *run) bool { return other == r })
	if len(c.runs) == 0 {
		delete(d.byRef, c.ref)
		d.customers = slices.DeleteFunc(d.customers,
			func(other *customer) bool { return other == c })
	}
}

// task returns the task of a dispatch.
func (r *run) task(o *outSeq, url string) model.Task {
	return model.Task{Job: r.job, Seq: o.grant.Seq, Customer: r.customer.ref, Scraper: r.scraper,
		Revision: r.revision,
		URL:      url, Tiers: o.grant.Tiers, Budget: o.grant.Budget, Attempt: o.grant.Attempt,
		Number: o.grant.Number,
		From:   o.grant.From, Trace: o.trace, Limited: o.grant.Limited, Domain: o.grant.Domain}
}
