package operation

import (
	"errors"
	"fmt"
	"slices"

	"shoal.dev/shoal/pkg/fault"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/utf8text"
)

// Problem is the body of every error (decision 1).
type Problem struct {
	Status        int           `json:"status"`
	Code          fault.Code    `json:"code"`
	Title         string        `json:"title"`
	Detail        string        `json:"detail"`
	CorrelationID string        `json:"correlationId"`
	Errors        []ProblemItem `json:"errors"`
	ScraperID     *ids.ID       `json:"scraperId,omitempty" doc:"With NAME_TAKEN, when a scraper is saved or made from a file: the scraper that has the name"`
	Type          string        `json:"type,omitempty" doc:"Type of that scraper"`
}

// TakenName is an error about a name, with the scraper that has it.
type TakenName struct {
	Err       error
	ScraperID ids.ID
	Type      string
}

// Error implements error.
func (t *TakenName) Error() string { return t.Err.Error() }

// Unwrap returns the error about the name.
func (t *TakenName) Unwrap() error { return t.Err }

// ProblemItem is one fault of a request. The code of the first one is the problem's code.
type ProblemItem struct {
	Code    fault.Code `json:"code"`
	Message string     `json:"message"`
	Field   string     `json:"field,omitempty" doc:"The input at fault, as a path: itemsConfig[2].selector"`
}

// NewProblem makes the body for an error. Errors without a code, and every 500, show only the
// correlation id.
func NewProblem(err error, correlationID string) *Problem {
	var list fault.List
	if !errors.As(err, &list) || len(list) == 0 {
		coded := &fault.Error{Code: fault.Internal}
		errors.As(err, &coded)
		list = fault.List{coded}
	}
	p := &Problem{Code: list[0].Code, CorrelationID: correlationID}
	entry := fault.Lookup(p.Code)
	if entry.Status == 500 || entry.Status == 0 {
		entry = fault.Lookup(fault.Internal)
		list = fault.List{{Code: fault.Internal}}
		p.Code = fault.Internal
	}
	p.Status, p.Title = entry.Status, entry.Title
	for _, f := range list[:min(len(list), maxProblems)] {
		p.Errors = append(p.Errors, ProblemItem{Code: f.Code,
			Message: utf8text.CutText(message(f), maxProblem),
			Field:   utf8text.CutText(f.Field, maxProblemField)})
	}
	if taken := (*TakenName)(nil); errors.As(err, &taken) {
		p.ScraperID, p.Type = &taken.ScraperID, taken.Type
	}
	p.Detail = p.Errors[0].Message
	if more := len(list) - 1; more > 0 {
		p.Detail += fmt.Sprintf(" (and %d more)", more)
	}
	return p
}

// Bounds on what a problem repeats of the caller's input.
const (
	maxProblem      = 4096 // bytes of a message
	maxProblemField = 512  // bytes of a field's name
)

func message(f *fault.Error) string {
	text := f.Detail
	if text == "" {
		text = fault.Lookup(f.Code).Title
	}
	if f.Field != "" {
		return f.Field + ": " + text
	}
	return text
}

// withFaults puts faults of a tool's arguments before those that the operation found. Of an input
// with both, the former say what is wrong.
func withFaults(of fault.List, err error) error {
	if len(of) == 0 {
		return err
	}
	var found fault.List
	if coded := (*fault.Error)(nil); !errors.As(err, &found) && errors.As(err, &coded) {
		found = fault.List{coded}
	}
	told := slices.Clone(of)
	for _, f := range found {
		if !slices.ContainsFunc(of, func(o *fault.Error) bool { return o.Field == f.Field }) {
			told = append(told, f)
		}
	}
	return told
}
