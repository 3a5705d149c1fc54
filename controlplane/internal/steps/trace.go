package steps

import (
	"slices"
	"time"

	"shoal.dev/shoal/controlplane/internal/command"
	"shoal.dev/shoal/controlplane/internal/dispatch"
	"shoal.dev/shoal/pkg/telemetry"
)

// traceExtend begins the spans of a plan, one per traced run. The function returned ends them.
func (l *Steps) traceExtend(plan []command.WindowRun) (end func(error)) {
	if l.Tracer == nil {
		return func(error) {}
	}
	var spans []*telemetry.Span
	for _, run := range plan {
		launch := l.Dispatcher.LaunchTrace(run.Job)
		if launch == nil || !slices.ContainsFunc(run.Seqs, dispatch.Traced) {
			continue
		}
		span := l.Tracer.Start(launch, "dispatch.extend", l.now())
		span.Text("job", run.Job.String())
		span.Int("seqs", len(run.Seqs))
		l.Dispatcher.Trace(run.Job, span.Context(launch))
		spans = append(spans, span)
	}
	return func(err error) {
		problem := ""
		if err != nil {
			problem = err.Error()
		}
		for _, span := range spans {
			span.End(l.now(), problem)
		}
	}
}

func (l *Steps) now() time.Time { return time.UnixMicro(l.NowMicros()) }
