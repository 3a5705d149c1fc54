package apiserver

import (
	"fmt"

	"shoal.dev/shoal/apiserver/internal/limits"
	"shoal.dev/shoal/apiserver/internal/operation"
)

// describe says what holds for all calls: the bounds that a caller meets.
func describe() string {
	return fmt.Sprintf("Times: address and header lines have %v and %d bytes, bodies of up to 1 "+
		"MiB %v, else the call ends with "+
		"408 upload_too_slow or 431. %s A refused sender may send on for a while, up to %d MiB "+
		"in %v, so that it reads "+
		"its answer; then the connection ends.\n\nRates: each call names its class. "+
		"RateLimit-Limit, RateLimit-Remaining "+
		"and RateLimit-Reset tell of the limit that binds: the key's, or that of all keys of "+
		"the customer together, %d times "+
		"as much unless told otherwise. Calls without a valid credential count for their "+
		"address. 429 has Retry-After, in "+
		"seconds. An address has %d connections at most.", headerTimeout, maxHeader, bodyTimeout,
		operation.DescribeBodies(),
		lingerBytes>>20, lingerTime, limits.CustomerFactor, maxOfAddress)
}
