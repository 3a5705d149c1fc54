package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/rowstore"
	"shoal.dev/shoal/pkg/rowstore/internal/intake"
)

func chunkID(list int64, n int) int64 { return list<<chunkIDBits | int64(n) }

// list finds a list within the writer's turn; an unknown one is ErrListUnknown.
func (w *writer) list(list ids.ID) (id int64, count uint32, finished bool, err error) {
	err = w.query(func(rows *sql.Rows) error { return rows.Scan(&id, &count, &finished) },
		selectList, list[:])
	if err == nil && id == 0 {
		err = rowstore.ErrListUnknown
	}
	return id, count, finished, err
}

// finished finds a list that is finished, and so can be read.
func (s *Store) finished(ctx context.Context, list ids.ID) (id int64, count uint32, err error) {
	var finished bool
	err = s.loop.QueryRowContext(ctx, selectList, list[:]).Scan(&id, &count, &finished)
	if errors.Is(err, sql.ErrNoRows) || err == nil && !finished {
		err = rowstore.ErrListUnknown
	}
	if err != nil {
		return 0, 0, fmt.Errorf("list %s: %w", list, err)
	}
	return id, count, nil
}

// Links implements rowstore.Lists.
func (s *Store) Links(ctx context.Context, list ids.ID, from uint32, most int) ([]rowstore.Link,
	error) {
	id, count, err := s.finished(ctx, list)
	if err != nil || from >= count || most <= 0 {
		return nil, err
	}
	end := uint32(min(uint64(count), uint64(from)+uint64(most)))
	links := make([]rowstore.Link, 0, end-from)
	for seq := from; seq < end; {
		chunk, err := s.links(ctx, list, chunkID(id, int(seq/intake.ChunkLinks)))
		if err != nil {
			return nil, err
		}
		for ; seq < end; seq++ {
			links = append(links,
				rowstore.Link{Seq: seq, URL: strings.Clone(chunk[seq%intake.ChunkLinks])})
			if (seq+1)%intake.ChunkLinks == 0 {
				seq++
				break
			}
		}
	}
	return links, nil
}

// LinksAt implements rowstore.Lists.
func (s *Store) LinksAt(ctx context.Context, list ids.ID, seqs []uint32) ([]rowstore.Link, error) {
	id, count, err := s.finished(ctx, list)
	if err != nil {
		return nil, err
	}
	links := make([]rowstore.Link, 0, len(seqs))
	var chunk []string
	held := int64(-1)
	for _, seq := range seqs {
		if seq >= count {
			break
		}
		if want := chunkID(id, int(seq/intake.ChunkLinks)); want != held {
			if chunk, err = s.links(ctx, list, want); err != nil {
				return nil, err
			}
			held = want
		}
		links = append(links, rowstore.Link{Seq: seq,
			URL: strings.Clone(chunk[seq%intake.ChunkLinks])})
	}
	return links, nil
}

// links returns the links of a chunk of a finished list. They share memory: clone what you keep.
func (s *Store) links(ctx context.Context, list ids.ID, chunk int64) ([]string, error) {
	if cached, ok := s.chunks.Get(chunk); ok {
		return cached, nil
	}
	var data []byte
	err := s.loop.QueryRowContext(ctx, `SELECT data FROM chunks WHERE id = ?`, chunk).Scan(&data)
	if errors.Is(err, sql.ErrNoRows) {
		err = rowstore.ErrListUnknown // dropped in the meantime
	}
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", list, err)
	}
	links, bytes, err := intake.Unpack(data)
	if err != nil {
		return nil, fmt.Errorf("list %s, chunk %d: %w", list, chunk, err)
	}
	if bytes <= maxCachedBytes {
		s.chunks.Add(chunk, links)
	}
	return links, nil
}

// AllLists implements rowstore.Lists.
func (s *Store) AllLists(ctx context.Context) ([]rowstore.ListInfo, error) {
	var lists []rowstore.ListInfo
	rows, err := s.loop.QueryContext(ctx, `SELECT list, count, finished FROM lists ORDER BY id`)
	err = each(rows, err, func(rows *sql.Rows) error {
		var info rowstore.ListInfo
		var id sql.RawBytes
		err := rows.Scan(&id, &info.Count, &info.Finished)
		copy(info.ID[:], id)
		lists = append(lists, info)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("row store: lists: %w", err)
	}
	return lists, nil
}

// DropList implements rowstore.Lists. Its first turn makes the list unreadable; each turn removes
// some chunks.
func (s *Store) DropList(ctx context.Context, list ids.ID) error {
	w := s.writer
	for more := true; more; {
		err := w.do(ctx, w.bulk, func() error {
			id, _, _, err := w.list(list)
			if errors.Is(err, rowstore.ErrListUnknown) {
				more = false
				return nil
			}
			if err != nil {
				return err
			}
			more, err = w.dropChunks(id)
			return err
		})
		if err != nil {
			return fmt.Errorf("drop list %s: %w", list, err)
		}
	}
	return nil
}

// dropChunks removes some chunks of a list, and the list with the last of them.
func (w *writer) dropChunks(list int64) (more bool, err error) {
	if _, err := w.exec(`UPDATE lists SET finished = 0 WHERE id = ?`, list); err != nil {
		return false, err
	}
	removed,
		err := w.exec(`DELETE FROM chunks WHERE id IN (SELECT id FROM chunks WHERE id BETWEEN ? AND ? LIMIT ?)`,
		chunkID(list, 0), chunkID(list+1, 0)-1, dropAtOnce)
	if err != nil || removed == dropAtOnce {
		return true, err
	}
	_, err = w.exec(`DELETE FROM lists WHERE id = ?`, list)
	return false, err
}
