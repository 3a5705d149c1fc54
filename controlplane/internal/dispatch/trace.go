package dispatch

import "shoal.dev/shoal/pkg/ids"

// tracedSeqs bounds what a traced run costs: the links beyond have no spans of their own.
const tracedSeqs = 256

// Traced says whether a seq of a traced run has spans.
func Traced(seq uint32) bool { return seq < tracedSeqs }

// LaunchTrace is the span of the call that launched a run; nil when it is not traced, or began
// under another leader.
func (d *Dispatcher) LaunchTrace(job ids.ID) []byte {
	d.mu.Lock()
	defer d.mu.Unlock()
	if r := d.runs[job]; r != nil {
		return r.launch
	}
	return nil
}

// Trace names the span under which a run's next seqs go out, which is the launch's until then.
func (d *Dispatcher) Trace(job ids.ID, span []byte) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if r := d.runs[job]; r != nil {
		r.trace = span
	}
}

// traceOf is the span that a dispatch of the run goes out under.
func (r *run) traceOf(seq uint32) []byte {
	if !Traced(seq) {
		return nil
	}
	return r.trace
}
