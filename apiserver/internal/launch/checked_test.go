package launch

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"shoal.dev/shoal/pkg/address"
	"shoal.dev/shoal/pkg/fault"
)

// anywhere allows every address.
type anywhere struct{ Guard }

func (anywhere) CheckURL(url string) error {
	_, err := address.Canonical(url)
	return err
}

// Checked addresses come back as they were given, with their canonical form.
func TestCheckedAddressesComeBack(t *testing.T) {
	l := &intake{Launcher: &Launcher{Guard: anywhere{}}}
	long := "https://shop.test/" + strings.Repeat("ü", 1_000)
	urls := []string{"https://shop.test/1", "HTTPS://Shop.test:443/a/../b?x=1#f", long,
		"https://shop.test/1"}
	var kept bytes.Buffer
	if err := l.check(t.Context(), &listed{field: "urls", urls: urls}, &kept); err != nil {
		t.Fatal(err)
	}
	whole := kept.Bytes()
	back := newChecked(bytes.NewReader(whole))
	for _, url := range urls {
		canonical, err := address.Canonical(url)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := back.next(t.Context()); err != nil || got.url != url ||
			got.canonical != canonical {
			t.Errorf("%.60s %.60s, want %.60s %.60s: %v", got.url, got.canonical, url, canonical,
				err)
		}
	}
	if _, err := back.next(context.Background()); !errors.Is(err, io.EOF) {
		t.Errorf("behind the last: %v", err)
	}
	back.rewind()
	if got, err := back.next(t.Context()); err != nil || got.url != urls[0] {
		t.Errorf("%.60s is first when they are read again: %v", got.url, err)
	}
	for _, spoiled := range [][]byte{whole[:len(whole)-1], {0xff, 0xff, 0xff, 0xff, 0x7f}, {1}} {
		back, err := newChecked(bytes.NewReader(spoiled)), error(nil)
		for err == nil {
			_, err = back.next(t.Context())
		}
		if !errors.Is(err, errSpoiled) {
			t.Errorf("a spoiled list ends with %v", err)
		}
	}
	err := l.check(t.Context(),
		&listed{field: "urls", urls: []string{"https://shop.test/", "nonsense"}}, &kept)
	if coded := (*fault.Error)(nil); !errors.As(err, &coded) || coded.Field != "urls[1]" {
		t.Errorf("%v", err)
	}
}
