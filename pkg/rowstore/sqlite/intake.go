package sqlite

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"

	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/rowstore"
)

// Bounds of list intake.
const (
	maxLinks     = 5_000_000
	chunkLinks   = 1_024
	chunksAtOnce = 8       // written in one turn
	bytesAtOnce  = 1 << 20 // packed, in about one turn
	maxIntakes   = 32      // lists taken in at a time
	hugeFrom     = 200_000 // links; of larger ones, one at a time
	chunkIDBits  = 16
	dropAtOnce   = 64 // chunks removed in one turn
	maxLinkBytes = 8 << 10
	insertChunk  = `INSERT INTO chunks VALUES (?, ?)`
	selectList   = `SELECT id, count, finished FROM lists WHERE list = ?`
	finishList   = `UPDATE lists SET count = ?, finished = 1 WHERE id = ?`
)

var errIntakeOver = errors.New("row store: the intake is over")

// intake is a list that is being taken in. One goroutine uses it.
type intake struct {
	store *Store
	list  ids.ID
	id    int64
	seed  uint64
	seen  seen
	spool *spool

	count  uint32
	chunk  []byte   // being filled
	packed [][]byte // full, not written yet
	bytes  int      // of packed
	stored int      // chunks written
	huge   bool     // holds the permit
	over   bool
}

// CreateList is rowstore.Lists. At most 32 lists are taken in at a time, and one of more than 200,000 links: CreateList
// and Add wait for that. A list has at most 5,000,000 links of 8 KiB.
func (s *Store) CreateList(ctx context.Context, list ids.ID) (rowstore.ListWriter, error) {
	select {
	case s.intakes <- struct{}{}:
	case <-ctx.Done():
		return nil, fmt.Errorf("row store: wait for an intake: %w", ctx.Err())
	}
	in, err := s.begin(ctx, list)
	if err != nil {
		<-s.intakes
		return nil, err
	}
	return in, nil
}

func (s *Store) begin(ctx context.Context, list ids.ID) (*intake, error) {
	in := &intake{store: s, list: list}
	var seed [8]byte
	_, _ = rand.Read(seed[:]) // it crashes the program rather than fail
	in.seed = binary.LittleEndian.Uint64(seed[:])
	var err error
	if in.spool, err = newSpool(s.dir); err != nil {
		return nil, err
	}
	err = s.writer.do(ctx, s.writer.bulk, func() error {
		if _, err := s.writer.exec(`INSERT INTO lists (list) VALUES (?)`, list[:]); err != nil {
			return err
		}
		in.id, _, _, err = s.writer.list(list)
		return err
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("create list %s: %w", list, err), in.spool.close())
	}
	return in, nil
}

// Add is rowstore.ListWriter. After an error that is not ctx's, only Abort makes sense.
func (in *intake) Add(ctx context.Context, url, canonical string) (bool, error) {
	switch {
	case in.over:
		return false, errIntakeOver
	case in.count == maxLinks:
		return false, fmt.Errorf("row store: list %s has %d links already", in.list, maxLinks)
	case len(url) > maxLinkBytes || len(canonical) > maxLinkBytes:
		return false, fmt.Errorf("row store: a link of list %s has more than %d bytes", in.list, maxLinkBytes)
	}
	if err := in.makeRoom(ctx); err != nil {
		return false, err
	}
	added, err := in.seen.add(in.store.hash(canonical, in.seed), in.count, func(seq uint32) (bool, error) {
		return in.spool.is(seq, canonical)
	})
	if err != nil || !added {
		return false, err
	}
	if err := in.spool.add(canonical); err != nil {
		return false, err
	}
	in.chunk = appendLink(in.chunk, url)
	in.count++
	if in.count%chunkLinks == 0 {
		in.pack()
	}
	return true, nil
}

// makeRoom does what may have to wait before a link is added.
func (in *intake) makeRoom(ctx context.Context) error {
	if in.count == hugeFrom && !in.huge {
		select {
		case in.store.huge <- struct{}{}:
			in.huge = true
		case <-ctx.Done():
			return fmt.Errorf("row store: wait for another large list: %w", ctx.Err())
		}
	}
	if len(in.packed) < chunksAtOnce && in.bytes < bytesAtOnce {
		return nil
	}
	w := in.store.writer
	if err := w.do(ctx, w.bulk, in.write); err != nil {
		return err
	}
	in.written()
	return nil
}

func (in *intake) pack() {
	if len(in.chunk) > 0 {
		data := packChunk(in.chunk)
		in.packed = append(in.packed, data)
		in.bytes += len(data)
		in.chunk = in.chunk[:0]
	}
}

// write stores the packed chunks, in the writer's turn.
func (in *intake) write() error {
	w := in.store.writer
	if _, _, finished, err := w.list(in.list); err != nil || finished {
		return errors.Join(err, errIntakeOver)
	}
	for i, data := range in.packed {
		if _, err := w.exec(insertChunk, chunkID(in.id, in.stored+i), data); err != nil {
			return fmt.Errorf("list %s: %w", in.list, err)
		}
	}
	return nil
}

// written forgets what a turn has stored.
func (in *intake) written() {
	in.stored += len(in.packed)
	clear(in.packed)
	in.packed, in.bytes = in.packed[:0], 0
}

// Finish is rowstore.ListWriter.
func (in *intake) Finish(ctx context.Context) (uint32, error) {
	if in.over {
		return 0, errIntakeOver
	}
	in.pack()
	w := in.store.writer
	w.point("rowstore.list_before_finish")
	err := w.do(ctx, w.bulk, func() error {
		if err := in.write(); err != nil {
			return err
		}
		_, err := w.exec(finishList, in.count, in.id)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("finish list %s: %w", in.list, err)
	}
	w.point("rowstore.list_after_finish")
	return in.count, in.end()
}

// Abort is rowstore.ListWriter.
func (in *intake) Abort(ctx context.Context) error {
	if in.over {
		return nil
	}
	return errors.Join(in.end(), in.store.DropList(ctx, in.list))
}

// end gives back what the intake holds.
func (in *intake) end() error {
	in.over = true
	if in.huge {
		<-in.store.huge
	}
	<-in.store.intakes
	in.seen, in.chunk, in.packed = seen{}, nil, nil
	return in.spool.close()
}
