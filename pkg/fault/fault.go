// Package fault owns the closed catalogue of coded errors. Every error that a user can meet has a
// Code here, with its title and HTTP status. The package does not write responses (apiserver does)
// and knows no resource.
package fault

import (
	"errors"
	"fmt"
)

// Error is an error with a catalogue code. Detail is a sentence for the user and may be empty.
// Field names the invalid input as a path (`itemsConfig[2].selector`), and may be empty. Cause is
// for logs and never shown.
type Error struct {
	Code   Code
	Detail string
	Field  string
	Cause  error
}

// New makes a coded error with a detail for the user.
func New(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Detail: fmt.Sprintf(format, args...)}
}

// Invalid makes a coded error that names the invalid input.
func Invalid(code Code, field, format string, args ...any) *Error {
	return &Error{Code: code, Field: field, Detail: fmt.Sprintf(format, args...)}
}

// Wrap makes a coded error around a cause that only logs show.
func Wrap(code Code, cause error, format string, args ...any) *Error {
	return &Error{Code: code, Detail: fmt.Sprintf(format, args...), Cause: cause}
}

// Error is for logs: it includes the cause.
func (e *Error) Error() string {
	text := string(e.Code)
	if e.Field != "" {
		text += " (" + e.Field + ")"
	}
	if e.Detail != "" {
		text += ": " + e.Detail
	}
	if e.Cause != nil {
		text += ": " + e.Cause.Error()
	}
	return text
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Cause }

// Is makes errors.Is(err, fault.New(code, "")) match on the code alone.
func (e *Error) Is(target error) bool {
	other, ok := target.(*Error)
	return ok && other.Code == e.Code
}

// CodeOf returns the code of the first coded error in err's chain, Internal if there is none, and
// "" if err is nil.
func CodeOf(err error) Code {
	if err == nil {
		return ""
	}
	var coded *Error
	if errors.As(err, &coded) {
		return coded.Code
	}
	return Internal
}

// DetailOf returns the detail of the first coded error in err's chain, "" if there is none.
func DetailOf(err error) string {
	var coded *Error
	if errors.As(err, &coded) {
		return coded.Detail
	}
	return ""
}

// List is several errors about one input. The first one determines the response's code.
type List []*Error

// Error returns the first error's text, and the number of further ones.
func (l List) Error() string {
	if len(l) == 0 {
		return "no errors"
	}
	text := l[0].Error()
	if len(l) > 1 {
		text += fmt.Sprintf(" (and %d more)", len(l)-1)
	}
	return text
}

// Unwrap lets errors.Is and errors.As examine each error.
func (l List) Unwrap() []error {
	errs := make([]error, len(l))
	for i, e := range l {
		errs[i] = e
	}
	return errs
}

// OrNil returns the list as an error, nil if it is empty.
func (l List) OrNil() error {
	if len(l) == 0 {
		return nil
	}
	return l
}
