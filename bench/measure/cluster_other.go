//go:build !linux

package measure

import (
	"context"
	"errors"
)

// Measure works only on Linux.
func (m *Cluster) Measure(context.Context, *Bench, *Report) error {
	return errors.Join(m.check(), errors.New("the measure of a cluster reads /proc: Linux only"))
}
