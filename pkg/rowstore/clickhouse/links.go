package clickhouse

import (
	"context"
	"fmt"
	"slices"
	"strings"

	clickhouse "github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/rowstore"
	"shoal.dev/shoal/pkg/rowstore/internal/intake"
)

// States of a list: the greatest ever written counts.
const (
	listBegun    = 0
	listFinished = 1
	listDropped  = 2
)

// chunksAtOnce is the most chunks that one query reads.
const chunksAtOnce = 64

// chunkColumns are the columns of the table of chunks.
var chunkColumns = []clickhouse.ColumnNameAndType{
	{Name: "list", Type: "FixedString(12)"}, {Name: "n", Type: "UInt32"},
	{Name: "data", Type: "String"},
}

type chunkKey struct {
	list ids.ID
	n    uint32
}

// list finds a list; a dropped list is unknown.
func (s *Store) list(ctx context.Context, list ids.ID) (info rowstore.ListInfo, err error) {
	infos, err := s.lists(ctx, `WHERE list = `+id(list))
	if err != nil {
		return info, err
	}
	if len(infos) == 0 {
		return info, fmt.Errorf("list %s: %w", list, rowstore.ErrListUnknown)
	}
	return infos[0], nil
}

func (s *Store) lists(ctx context.Context, where string) ([]rowstore.ListInfo, error) {
	infos, err := read(ctx, s, fmt.Sprintf(`SELECT list, max(count), max(state) AS reached FROM %s %s
		GROUP BY list HAVING reached < %d ORDER BY list`, s.table("lists"), where, listDropped), func(rows driver.Rows) (info rowstore.ListInfo, err error) {
		var id string
		var state uint8
		err = rows.Scan(&id, &info.Count, &state)
		copy(info.ID[:], id)
		info.Finished = state == listFinished
		return info, err
	})
	if err != nil {
		return nil, fmt.Errorf("row store: lists: %w", err)
	}
	return infos, nil
}

// AllLists implements rowstore.Lists.
func (s *Store) AllLists(ctx context.Context) ([]rowstore.ListInfo,
	error) {
	return s.lists(ctx, ``)
}

// Links implements rowstore.Lists.
func (s *Store) Links(ctx context.Context, list ids.ID, from uint32, most int) ([]rowstore.Link,
	error) {
	count, err := s.finished(ctx, list)
	if err != nil || from >= count || most <= 0 {
		return nil, err
	}
	seqs := make([]uint32, 0, min(uint64(count-from), uint64(most)))
	for seq := from; seq < count && len(seqs) < most; seq++ {
		seqs = append(seqs, seq)
	}
	return s.linksAt(ctx, list, seqs)
}

// LinksAt implements rowstore.Lists.
func (s *Store) LinksAt(ctx context.Context, list ids.ID, seqs []uint32) ([]rowstore.Link, error) {
	count, err := s.finished(ctx, list)
	if err != nil {
		return nil, err
	}
	if past, _ := slices.BinarySearch(seqs, count); past < len(seqs) {
		seqs = seqs[:past]
	}
	return s.linksAt(ctx, list, seqs)
}

// finished returns the length of a finished list.
func (s *Store) finished(ctx context.Context, list ids.ID) (uint32, error) {
	info, err := s.list(ctx, list)
	if err == nil && !info.Finished {
		err = fmt.Errorf("list %s: %w", list, rowstore.ErrListUnknown)
	}
	return info.Count, err
}

// linksAt returns links that are in the list, some chunks at a time.
func (s *Store) linksAt(ctx context.Context, list ids.ID, seqs []uint32) ([]rowstore.Link, error) {
	links := make([]rowstore.Link, 0, len(seqs))
	for len(seqs) > 0 {
		var wanted []uint32
		upto := 0
		for ; upto < len(seqs); upto++ {
			n := seqs[upto] / intake.ChunkLinks
			if len(wanted) > 0 && wanted[len(wanted)-1] == n {
				continue
			}
			if len(wanted) == chunksAtOnce {
				break
			}
			wanted = append(wanted, n)
		}
		chunks, err := s.unpacked(ctx, list, wanted)
		if err != nil {
			return nil, err
		}
		for _, seq := range seqs[:upto] {
			chunk, at := chunks[seq/intake.ChunkLinks], int(seq%intake.ChunkLinks)
			if at >= len(chunk) {
				// dropped in the meantime
				return nil, fmt.Errorf("list %s, link %d: %w", list, seq, rowstore.ErrListUnknown)
			}
			links = append(links, rowstore.Link{Seq: seq, URL: strings.Clone(chunk[at])})
		}
		seqs = seqs[upto:]
	}
	return links, nil
}

// unpacked returns the links of chunks. They share memory: clone what you keep.
func (s *Store) unpacked(ctx context.Context, list ids.ID, numbers []uint32) (map[uint32][]string,
	error) {
	chunks := make(map[uint32][]string, len(numbers))
	missing := numbers[:0:0]
	for _, n := range numbers {
		if cached, ok := s.chunks.Get(chunkKey{list, n}); ok {
			chunks[n] = cached
		} else {
			missing = append(missing, n)
		}
	}
	if len(missing) == 0 {
		return chunks, nil
	}
	type chunk struct {
		n    uint32
		data string
	}
	wanted := join(missing, func(n uint32) string { return fmt.Sprint(n) })
	stored, err := read(ctx, s, fmt.Sprintf(`SELECT n, data FROM %s WHERE list = %s AND n IN (%s)`,
		s.table("chunks"), id(list), wanted), func(rows driver.Rows) (c chunk, err error) {
		err = rows.Scan(&c.n, &c.data)
		return c, err
	})
	if err != nil {
		return nil, fmt.Errorf("row store: list %s: %w", list, err)
	}
	for _, c := range stored {
		if chunks[c.n] != nil {
			continue // written twice, since an answer was lost
		}
		links, bytes, err := intake.Unpack([]byte(c.data))
		if err != nil {
			return nil, fmt.Errorf("row store: list %s, chunk %d: %w", list, c.n, err)
		}
		chunks[c.n] = links
		if bytes <= maxCached {
			s.chunks.Add(chunkKey{list, c.n}, links)
		}
	}
	return chunks, nil
}

// listWriter is a list that is being taken in. Only one goroutine may use it.
type listWriter struct {
	store *Store
	list  ids.ID
	links *intake.List
}

// CreateList implements rowstore.Lists. One process takes in at most 32 lists at a time, and one of
// more than 200,000 links: CreateList and Add wait. A list has at most 5,000,000 links of 8 KiB.
func (s *Store) CreateList(ctx context.Context, list ids.ID) (rowstore.ListWriter, error) {
	infos, err := read(ctx, s, `SELECT 1 FROM `+s.table("lists")+` WHERE list = `+id(list),
		scanOne)
	if err == nil && len(infos) > 0 {
		err = fmt.Errorf("there is one already")
	}
	if err != nil {
		return nil, fmt.Errorf("row store: create list %s: %w", list, err)
	}
	links, err := s.intakes.BeginList(ctx, "", list.String())
	if err != nil {
		return nil, err
	}
	if err := s.mark(ctx, list, 0, listBegun); err != nil {
		_ = links.End() // the first error counts
		return nil, fmt.Errorf("row store: create list %s: %w", list, err)
	}
	return &listWriter{s, list, links}, nil
}

// mark records that a list has reached a state.
func (s *Store) mark(ctx context.Context, list ids.ID, count uint32, state int) error {
	return s.exec(ctx, callTimeout,
		fmt.Sprintf(`INSERT INTO %s (list, count, state) VALUES (%s, %d, %d)`,
			s.table("lists"), id(list), count, state))
}

// Add implements rowstore.ListWriter. After an error that is not ctx's, only Abort makes sense.
func (in *listWriter) Add(ctx context.Context, url, canonical string) (bool, error) {
	if err := in.links.Wait(ctx); err != nil {
		return false, err
	}
	if in.links.Full() {
		if err := in.write(ctx); err != nil {
			return false, err
		}
	}
	return in.links.Add(url, canonical)
}

// write stores the packed chunks.
func (in *listWriter) write(ctx context.Context) error {
	first, chunks := in.links.Packed()
	if len(chunks) == 0 {
		return nil
	}
	s := in.store
	err := s.retry(ctx, callTimeout, func(ctx context.Context) error {
		insert, err := s.conn.PrepareBatch(withColumns(ctx, chunkColumns),
			`INSERT INTO `+s.table("chunks"))
		if err != nil {
			return err
		}
		defer func() { _ = insert.Close() }() // Send returns the error
		for i, data := range chunks {
			if err := insert.Append(in.list[:], uint32(first+i), data); err != nil {
				return err
			}
		}
		return insert.Send()
	})
	if err != nil {
		return fmt.Errorf("row store: list %s: %w", in.list, err)
	}
	in.links.Written()
	return nil
}

// Finish implements rowstore.ListWriter. A list that was dropped meanwhile is unknown.
func (in *listWriter) Finish(ctx context.Context) (uint32, error) {
	if in.links.Over() {
		return 0, intake.ErrOver
	}
	in.links.Pack()
	if err := in.write(ctx); err != nil {
		return 0, err
	}
	in.store.point("rowstore.list_before_finish")
	err := in.store.mark(ctx, in.list, in.links.Count(), listFinished)
	if err == nil {
		_, err = in.store.finished(ctx, in.list)
	}
	if err != nil {
		return 0, fmt.Errorf("row store: finish list: %w", err)
	}
	in.store.point("rowstore.list_after_finish")
	return in.links.Count(), in.links.End()
}

// Abort implements rowstore.ListWriter.
func (in *listWriter) Abort(ctx context.Context) error {
	if in.links.Over() {
		return nil
	}
	if err := in.links.End(); err != nil {
		return fmt.Errorf("row store: abort list %s: %w", in.list, err)
	}
	return in.store.DropList(ctx, in.list)
}

// DropList implements rowstore.Lists. It makes the list unreadable before it removes the chunks.
func (s *Store) DropList(ctx context.Context, list ids.ID) error {
	err := s.mark(ctx, list, 0, listDropped)
	if err == nil {
		err = s.exec(ctx, removeTimeout, `DELETE FROM `+s.table("chunks")+` WHERE list = `+id(list))
	}
	if err != nil {
		return fmt.Errorf("row store: drop list %s: %w", list, err)
	}
	return nil
}
