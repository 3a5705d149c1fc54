package ingest

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"slices"

	"shoal.dev/shoal/controlplane/client"
	"shoal.dev/shoal/pkg/blobstore"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/match"
	"shoal.dev/shoal/pkg/upload"
	"shoal.dev/shoal/pkg/work"
)

// The columns of a file's first rows decide which column is which. It takes this many rows, or
// fewer once they have this many bytes.
const (
	titledRows  = 1_000
	titledBytes = 1_000_000
)

// CatalogueConfig configures Catalogue. Point may be left out.
type CatalogueConfig struct {
	Client interface {
		client.Proposer
		client.Reader
	}
	Files Files // nil: there are no uploads here
	// Point is called at named places, so that tests can end the process there. They are
	// "work.catalogue.before_end" and "work.catalogue.after_end".
	Point func(name string)
}

// Catalogue turns an uploaded file of products into the catalogue that rows are matched with
// (decision 68). It reads the file once from first row to last, and keeps only the number of
// products. So repeating a step, even beside a late one, gives the same result. The previous file
// stands until one command replaces it. Files that nobody refers to any more go with the orphans.
func Catalogue(config CatalogueConfig) work.Kind {
	if config.Point == nil {
		config.Point = func(string) {}
	}
	return work.Kind{Name: work.Catalogue, AtOnce: 1,
		Ready: func() bool { return config.Files != nil },
		Step: func(ctx context.Context, item work.Item) (work.Outcome, error) {
			if err := config.step(ctx, item.ID); err != nil {
				return work.Outcome{}, fmt.Errorf("ingest: catalogue %s: %w", item.ID, err)
			}
			return work.Done(), nil
		}}
}

// catalogueKey returns the blob key of a catalogue's file.
func catalogueKey(id ids.ID) blobstore.Key {
	return blobstore.Key{Kind: blobstore.Catalogues, Owner: "service", ID: id.String()}
}

// step reads a file and reports the result.
func (c *CatalogueConfig) step(ctx context.Context, id ids.ID) error {
	view, err := c.Client.Fresh(ctx)
	if err != nil {
		return err
	}
	known := view.Catalogue(id)
	if known == nil || known.State != client.CatalogueReading {
		return nil
	}
	end := client.EndCatalogue{ID: id}
	refusal := (*upload.Refusal)(nil)
	seen := idSet{seed: maphash.MakeSeed()}
	switch err := readCatalogue(ctx, c.Files, known, seen.add); {
	case errors.As(err, &refusal):
		end.Message = refusal.Reason
	case err != nil:
		return err
	case seen.twice():
		end.Message = "two products have one id"
	default:
		end.Products = uint64(len(seen.hashes))
	}
	c.Point("work.catalogue.before_end")
	if _, err := client.Do(ctx, c.Client, end, nil); err != nil {
		return err
	}
	c.Point("work.catalogue.after_end")
	return nil
}

// idSet is a set of product ids as hashes. A collision occurs in one of ten million catalogues.
type idSet struct {
	seed   maphash.Seed
	hashes []uint64
}

func (s *idSet) add(id string, _ *match.Product) error {
	s.hashes = append(s.hashes, maphash.String(s.seed, id))
	return nil
}

func (s *idSet) twice() bool {
	slices.Sort(s.hashes)
	return len(slices.Compact(s.hashes)) < len(s.hashes)
}

// readCatalogue calls take for each product of a file, in order. If the file is at fault, the error
// is an *upload.Refusal.
func readCatalogue(ctx context.Context, files Files, known *client.Catalogue,
	take func(id string, p *match.Product) error) error {
	file, err := files.Open(ctx, catalogueKey(known.ID), 0, -1)
	if errors.Is(err, blobstore.ErrNotFound) {
		return &upload.Refusal{Reason: gone}
	}
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }() // read-only
	rows, err := upload.NewReader(upload.Format(known.Format), file, "")
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }() // read-only
	r := productReader{rows: rows}
	if err := r.readColumns(); err != nil {
		return err
	}
	for n := 1; ; n++ {
		row, err := r.next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		id, p := r.product(row)
		switch {
		case id == "" || len(id) > match.MaxID:
			return &upload.Refusal{Reason: fmt.Sprintf("row %d: the id of a product has from 1 to "+
				"%d bytes", n, match.MaxID)}
		case n > match.MaxProducts:
			return &upload.Refusal{Reason: match.ErrFull.Error()}
		}
		if err := take(id, &p); err != nil {
			return err
		}
	}
}

// productReader reads the products of a file. It holds the first rows until columns are known.
type productReader struct {
	rows    upload.Reader
	first   []upload.Row
	ended   error // error or end when reading the first rows
	columns match.Columns
}

// readColumns reads the first rows, and decides by their columns which column is which.
func (r *productReader) readColumns() error {
	var names []string
	for size := 0; len(r.first) < titledRows && size < titledBytes; {
		row, err := r.rows.Next()
		if err != nil {
			if !errors.Is(err, io.EOF) {
				return err
			}
			r.ended = err
			break
		}
		r.first = append(r.first, slices.Clone(row))
		for _, cell := range row {
			size += len(cell.Name) + len(cell.Text)
			if !slices.Contains(names, cell.Name) {
				names = append(names, cell.Name)
			}
		}
	}
	r.columns = match.ColumnsOf(names)
	switch {
	case len(r.first) == 0:
		return upload.Nothing()
	case r.columns.ID == "":
		return &upload.Refusal{Reason: "no column has the ids of the products: call it id"}
	case !r.columns.Comparable():
		return &upload.Refusal{Reason: "no column tells products: call them gtin, brand, model " +
			"and title"}
	}
	return nil
}

func (r *productReader) next() (upload.Row, error) {
	switch {
	case len(r.first) > 0:
		row := r.first[0]
		r.first = r.first[1:]
		return row, nil
	case r.ended != nil:
		return nil, r.ended
	}
	return r.rows.Next()
}

// product returns a row's product and its id.
func (r *productReader) product(row upload.Row) (id string, p match.Product) {
	value := func(column string) string {
		for _, cell := range row {
			if cell.Name == column {
				return cell.Text
			}
		}
		return ""
	}
	return value(r.columns.ID), r.columns.Product(value)
}
