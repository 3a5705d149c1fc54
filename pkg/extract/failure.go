package extract

import "shoal.dev/shoal/pkg/fault"

// CodeOf returns the code of a page whose extraction failed with err. A crawl and a re-extraction
// of what it kept both ask here, so that they give a page the same error.
func CodeOf(err error) fault.Code {
	if code := fault.CodeOf(err); fault.Lookup(code).Status == 0 {
		return code
	}
	return fault.PageUnparsable
}

// ReasonOf returns what a coded error tells the customer of a page, in at most MaxReason bytes; ""
// for other errors.
func ReasonOf(err error) string { return cutReason(fault.DetailOf(err)) }
