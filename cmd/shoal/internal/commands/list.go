package commands

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"path/filepath"

	"shoal.dev/shoal/cmd/shoal/internal/api"
	"shoal.dev/shoal/cmd/shoal/internal/terminal"
	"shoal.dev/shoal/cmd/shoal/internal/urllist"
)

// shownBad is how many bad lines of a refused list are printed. If the list goes on without them,
// all are: nobody else reports them.
const shownBad = 20

// openList scans a list of addresses and reports its bad lines. It refuses a list with bad lines
// unless skip is set.
func openList(t *terminal.Terminal, path string, skip bool) (*urllist.List, error) {
	bad := int64(0)
	list, err := urllist.Open(path, t.In, skip, func(b urllist.Bad) {
		if bad++; skip || bad <= shownBad {
			t.Notef("line %d %s: %s", b.Line, b.Reason,
				terminal.Cut(terminal.Printable(b.Text), 2*terminal.WidestCell))
		}
	})
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, terminal.Usagef("there is no file %s", path)
	case err != nil:
		return nil, err
	case bad == 0:
		return list, nil
	case list.Good == 0 || !skip:
		if !skip && bad > shownBad {
			t.Notef("… and %s more", terminal.Plural(bad-shownBad, "line"))
		}
		text := fmt.Sprintf("%s: %s of %s no address", path, terminal.Plural(bad, "line"),
			terminal.Count(bad+list.Good))
		if list.Good > 0 {
			text += "; --skip-bad goes on without them"
		}
		return nil, errors.Join(&terminal.ExitError{Code: terminal.ExitFailed, Text: text},
			list.Close())
	}
	t.Notef("%s left out", terminal.Plural(bad, "bad line"))
	return list, nil
}

// launchList launches a list run.
func launchList(ctx context.Context, client *api.Client, query url.Values,
	list *urllist.List) (api.Answer[api.Launch], error) {
	launch, err := client.RunList(ctx, query, list.Body, list.Length, list.ContentType)
	return launch, launchError(err)
}

// launchError adds what to do about a refused launch.
func launchError(err error) error {
	switch {
	case api.IsStatus(err, http.StatusPaymentRequired):
		return fmt.Errorf("launch: %w\nThe operator fills a wallet with `shoal wallet adjust`", err)
	case err != nil:
		return fmt.Errorf("launch: %w", err)
	}
	return nil
}

// ListName is the default name of a run, at most 200 characters.
func ListName(path, now string) string {
	base := filepath.Base(path)
	if path == standard {
		base = "list"
	}
	return terminal.Cut(base, 200-1-len(now)) + " " + now
}

// stamp is the present for names: a person never begins two runs within a millisecond.
func stamp(t *terminal.Terminal) string {
	return t.Clock.Now().UTC().Format("2006-01-02 15:04:05.000")
}
