package operation

import (
	"errors"

	"shoal.dev/shoal/pkg/fault"
)

// statusGone is the customary status, in logs and metrics, of a call whose caller has hung up.
const statusGone = 499

// ErrGone is the answer to a caller who has hung up. It is not an error of the service.
var (
	ErrGone = fault.Wrap(fault.Unavailable, errGone, "the caller is gone")
	errGone = errors.New("operation: the caller is gone") // tells faults of one code apart
)
