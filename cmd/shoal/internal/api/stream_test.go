package api

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestReadEvents(t *testing.T) {
	text := "retry: 3000\n\n: ping\n\nid: 7\nevent: status\ndata: {\"a\":\ndata: " +
		"1}\n\nevent:other\ndata\n\nid: 8\nevent: status\ndata: cut off"
	var got []event
	err := readEvents(iotest.OneByteReader(strings.NewReader(text)), func(e event) error {
		got = append(got, e)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []event{{retry: 3 * time.Second}, {id: "7", name: "status", data: "{\"a\":\n1}"},
		{name: "other"}}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(event{})); diff != "" {
		t.Error(diff)
	}
}

func TestReadEventsEndsWithTheHandler(t *testing.T) {
	calls := 0
	err := readEvents(strings.NewReader("data: 1\n\ndata: 2\n\n"), func(event) error {
		calls++
		return io.EOF
	})
	if err != nil || calls != 1 {
		t.Errorf("%d calls, %v", calls, err)
	}
	broken := errors.New("broken")
	if err := readEvents(strings.NewReader("data: 1\n\n"),
		func(event) error { return broken }); !errors.Is(err, broken) {
		t.Errorf("%v", err)
	}
}

func FuzzEvents(f *testing.F) {
	f.Add("id: 7\nevent: status\ndata: {}\n\n")
	f.Add("retry: 99999999999999999999\n\n: \n\ndata\n\n")
	f.Add("data:x\r\n\r\n")
	f.Fuzz(func(t *testing.T, text string) {
		_ = readEvents(strings.NewReader(text), func(e event) error {
			if e == (event{}) || e.retry < 0 || e.retry > 66*time.Second {
				t.Errorf("%q gives %+v", text, e)
			}
			return nil
		})
	})
}
