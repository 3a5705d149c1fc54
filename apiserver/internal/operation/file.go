package operation

import (
	"context"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strconv"
	"strings"

	"shoal.dev/shoal/pkg/fault"
)

// File is an answer that existed before the call: bytes that never change under their tag. A client
// gets all of it or one range, and can resume where it broke off. HEAD returns the same headers
// without the bytes.
type File struct {
	ContentType string
	Name        string // as in a Download
	Bytes       int64
	Tag         string // identifies the bytes; of letters and digits
	Part               // the part that is asked for
	// Write writes length bytes beginning at from. It runs after the handler has returned.
	Write func(ctx context.Context, w io.Writer, from, length int64) error
}

// Part is how a request asks for a part of a File (RFC 9110, sections 13 and 14).
type Part struct {
	Range       string `header:"Range" doc:"One range of bytes: bytes=FROM-TO, bytes=FROM- or bytes=-LAST. Other forms and several ranges are ignored: the answer is the whole file."`
	IfRange     string `header:"If-Range" doc:"The ETag of the bytes that the client has; if the file differs, the answer is the whole file"`
	IfNoneMatch string `header:"If-None-Match" doc:"The answer is 304 if one of these is the ETag"`
}

var fileType = reflect.TypeFor[File]()

// file answers with a file, or with a part of it.
func (x *exchange) file(f File) {
	tag := `"` + f.Tag + `"`
	h := &x.rc.Response.Header
	if matches(f.IfNoneMatch, tag) {
		h.Set("ETag", tag)
		x.rc.SetStatusCode(304)
		x.rc.Response.SkipBody = true
		if x.ended != nil {
			x.ended()
		}
		return
	}
	if x.rc.IsHead() {
		f.Range = "" // Range only has a meaning for GET
	}
	from, length, ranged, err := f.part(tag)
	if err != nil {
		h.Set("Content-Range", fmt.Sprintf("bytes */%d", f.Bytes))
		if x.ended != nil {
			x.ended()
		}
		x.fail(err)
		return
	}
	answer := Download{ContentType: f.ContentType, Name: f.Name,
		Write: func(ctx context.Context, w io.Writer) error {
			return f.Write(ctx, w, from, length)
		}}
	if !x.download(answer, int(length)) {
		return
	}
	h.Set("ETag", tag)
	h.Set("Accept-Ranges", "bytes")
	if ranged {
		x.rc.SetStatusCode(206)
		h.Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", from, from+length-1, f.Bytes))
	}
}

// part is the range of the file that the request asks for; ranged is false for all of it. Its fault
// is range_not_satisfiable.
func (f *File) part(tag string) (from, length int64, ranged bool, err error) {
	first, last, is := parseRange(f.Range)
	switch {
	case !is, f.IfRange != "" && strings.TrimSpace(f.IfRange) != tag:
		return 0, f.Bytes, false, nil
	case first < 0: // the last bytes
		from, last = max(f.Bytes-last, 0), f.Bytes-1
	case last < 0:
		from, last = first, f.Bytes-1
	default:
		from, last = first, min(last, f.Bytes-1)
	}
	if from > last {
		return 0, 0, false, fault.New(fault.RangeNotSatisfiable, "the file has %d bytes", f.Bytes)
	}
	return from, last - from + 1, true, nil
}

// parseRange reads one range of bytes. If first is -1, the range is the last bytes, as many as last
// says. If last is -1, it is everything from first on. Text that cannot be read is ignored.
func parseRange(text string) (first, last int64, is bool) {
	unit, set, _ := strings.Cut(strings.TrimSpace(text), "=")
	left, right, dash := strings.Cut(strings.TrimSpace(set), "-")
	if !strings.EqualFold(unit, "bytes") || !dash || strings.Contains(set, ",") {
		return 0, 0, false
	}
	number := func(digits string) (int64, bool) {
		if strings.Trim(digits, "0123456789") != "" {
			return 0, false // such as a sign
		}
		n, err := strconv.ParseInt(digits, 10, 64)
		return n, err == nil || errors.Is(err, strconv.ErrRange) // the greatest: beyond all files
	}
	first, last = -1, -1
	leftIs, rightIs := true, true
	if left != "" {
		first, leftIs = number(left)
	}
	if right != "" {
		last, rightIs = number(right)
	}
	switch {
	case !leftIs || !rightIs, left == "" && right == "", left != "" && right != "" && last < first:
		return 0, 0, false
	}
	return first, last, true
}

// matches says whether a list of tags holds tag or *.
func matches(list, tag string) bool {
	for text := range strings.SplitSeq(list, ",") {
		text = strings.TrimSpace(text)
		if text == "*" || strings.TrimPrefix(text, "W/") == tag {
			return true
		}
	}
	return false
}
