package dispatch

import "shoal.dev/shoal/pkg/ids"

// tracedSeqs bounds the cost of tracing a run: later links get no spans.
const tracedSeqs = 256

// Traced says whether a seq of a traced run has spans.
func Traced(seq uint32) bool { return seq < tracedSeqs }

// LaunchTrace returns the span of the call that launched a run; nil if it is not traced or began
// under another leader.
func (d *Dispatcher) LaunchTrace(job ids.ID) []byte {
	d.mu.Lock()
	defer d.mu.Unlock()
	if r := d.runs[job]; r != nil {
		return r.launch
	}
	return nil
}

// Trace sets the span under which a run's next seqs go out. At first that is the launch's.
func (d *Dispatcher) Trace(job ids.ID, span []byte) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if r := d.runs[job]; r != nil {
		r.trace = span
	}
}

// traceOf returns the span under which a dispatch of the run goes out.
func (r *run) traceOf(seq uint32) []byte {
	if !Traced(seq) {
		return nil
	}
	return r.trace
}
