package api

import (
	"encoding/base64"
	"testing"

	"shoal.dev/shoal/pkg/fault"
)

type place struct {
	After int64 `json:"a"`
	Upto  int64 `json:"u"`
}

func TestCursor(t *testing.T) {
	want := place{After: 17, Upto: 99}
	cursor := NewCursor(want, "alice", "group")
	var got place
	if err := ReadCursor(cursor, &got, "alice", "group"); err != nil || got != want {
		t.Fatalf("read %+v, %v", got, err)
	}
	for name, refused := range map[string][]string{
		"another read":      {cursor, "alice", "other"},
		"parts cut apart":   {cursor, "alic", "egroup"},
		"empty":             {"", "alice", "group"},
		"cut":               {cursor[:len(cursor)-2], "alice", "group"},
		"another version":   {changed(t, cursor, 0), "alice", "group"},
		"another checksum":  {changed(t, cursor, 3), "alice", "group"},
		"another place":     {changed(t, cursor, 14), "alice", "group"},
		"standard alphabet": {"++//", "alice", "group"},
		"a line end":        {cursor[:8] + "\n" + cursor[8:], "alice", "group"},
	} {
		if err := ReadCursor(refused[0], &got,
			refused[1:]...); fault.CodeOf(err) != fault.InvalidCursor {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func changed(t *testing.T, cursor string, at int) string {
	t.Helper()
	data, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil {
		t.Fatal(err)
	}
	data[at] ^= 1
	return base64.RawURLEncoding.EncodeToString(data)
}

func FuzzReadCursor(f *testing.F) {
	f.Add(NewCursor(place{1, 2}, "a"))
	f.Add("AQ")
	f.Fuzz(func(t *testing.T, cursor string) {
		var got place
		if ReadCursor(cursor, &got, "a") == nil &&
			ReadCursor(NewCursor(got, "a"), &got, "a") != nil {
			t.Errorf("%q is read, but not what is written of it", cursor)
		}
	})
}
