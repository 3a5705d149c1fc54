package sqlite

import (
	"context"
	"errors"
	"fmt"

	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/rowstore"
	"shoal.dev/shoal/pkg/rowstore/internal/intake"
)

const (
	chunkIDBits = 16
	dropAtOnce  = 64 // chunks removed in one turn
	insertChunk = `INSERT INTO chunks (id, data) VALUES (?, ?)`
	selectList  = `SELECT id, count, finished FROM lists WHERE list = ?`
	finishList  = `UPDATE lists SET count = ?, finished = 1 WHERE id = ?`
)

// listWriter is a list that is being taken in. Only one goroutine may use it.
type listWriter struct {
	store *Store
	list  ids.ID
	id    int64
	links *intake.List
}

// CreateList implements rowstore.Lists. At most 32 lists are taken in at a time, and one of more
// than 200,000 links: CreateList and Add wait. A list has at most 5,000,000 links of 8 KiB.
func (s *Store) CreateList(ctx context.Context, list ids.ID) (rowstore.ListWriter, error) {
	links, err := s.intakes.BeginList(ctx, s.dir, list.String())
	if err != nil {
		return nil, err
	}
	in := &listWriter{store: s, list: list, links: links}
	err = s.writer.do(ctx, s.writer.bulk, func() error {
		if _, err := s.writer.exec(`INSERT INTO lists (list) VALUES (?)`, list[:]); err != nil {
			return err
		}
		in.id, _, _, err = s.writer.list(list)
		return err
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("create list %s: %w", list, err), links.End())
	}
	return in, nil
}

// Add implements rowstore.ListWriter. After an error that is not ctx's, only Abort makes sense.
func (in *listWriter) Add(ctx context.Context, url, canonical string) (bool, error) {
	if err := in.links.Wait(ctx); err != nil {
		return false, err
	}
	if in.links.Full() {
		w := in.store.writer
		if err := w.do(ctx, w.bulk, in.write); err != nil {
			return false, err
		}
		in.links.Written()
	}
	return in.links.Add(url, canonical)
}

// write stores the packed chunks, within the writer's turn.
func (in *listWriter) write() error {
	w := in.store.writer
	if _, _, finished, err := w.list(in.list); err != nil || finished {
		return errors.Join(err, intake.ErrOver)
	}
	first, chunks := in.links.Packed()
	for i, data := range chunks {
		if _, err := w.exec(insertChunk, chunkID(in.id, first+i), data); err != nil {
			return fmt.Errorf("list %s: %w", in.list, err)
		}
	}
	return nil
}

// Finish implements rowstore.ListWriter.
func (in *listWriter) Finish(ctx context.Context) (uint32, error) {
	if in.links.Over() {
		return 0, intake.ErrOver
	}
	in.links.Pack()
	w := in.store.writer
	w.point("rowstore.list_before_finish")
	err := w.do(ctx, w.bulk, func() error {
		if err := in.write(); err != nil {
			return err
		}
		_, err := w.exec(finishList, in.links.Count(), in.id)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("finish list %s: %w", in.list, err)
	}
	w.point("rowstore.list_after_finish")
	return in.links.Count(), in.links.End()
}

// Abort implements rowstore.ListWriter.
func (in *listWriter) Abort(ctx context.Context) error {
	if in.links.Over() {
		return nil
	}
	return errors.Join(in.links.End(), in.store.DropList(ctx, in.list))
}
