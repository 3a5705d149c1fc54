package operation

import (
	"errors"

	"shoal.dev/shoal/pkg/fault"
)

// statusGone is the customary status, in logs and metrics, of a call that its caller has given up.
const statusGone = 499

// ErrGone is the answer that a caller who has hung up does not see. It is no error of the service.
var (
	ErrGone = fault.Wrap(fault.Unavailable, errGone, "the caller is gone")
	errGone = errors.New("operation: the caller is gone") // faults of one code are alike
)
