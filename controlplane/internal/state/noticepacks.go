package state

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"iter"
	"slices"

	"shoal.dev/shoal/controlplane/internal/codec"
	"shoal.dev/shoal/pkg/ids"
)

// packBytes bounds a pack of several notices. The allocator wastes nothing of this size.
const packBytes = 4 << 10

// noticePack has some of a customer's notices, oldest first. Years of use leave millions of them,
// which are hardly ever read. As records of their own they would take four times the memory, and
// seconds of a restart (go test ./controlplane/internal/fsm -run TestNoticesAreSmall -v).
type noticePack struct {
	Customer string `cbor:"1,keyasint"`
	Number   uint64 `cbor:"2,keyasint"` // packs with higher numbers have later notices
	Packed   []byte `cbor:"3,keyasint"` // packedNotices, one after another
}

var noticesTable = define(NoticesSince, "notices",
	index("id", true, func(p *noticePack) []any { return []any{p.Customer, p.Number} }),
	index("age", true, func(p *noticePack) []any {
		return []any{p.oldest(), p.Customer, p.Number}
	}),
).untold()

// all visits the pack's notices with their places in it. It ends at the first that is cut short.
func (p *noticePack) all() iter.Seq2[int, packedNotice] {
	return func(yield func(int, packedNotice) bool) {
		for at := 0; at+packedRest <= len(p.Packed); {
			size := int(binary.BigEndian.Uint32(p.Packed[at:]))
			if size < packedRest || size > len(p.Packed)-at ||
				!yield(at, packedNotice(p.Packed[at:at+size])) {
				return
			}
			at += size
		}
	}
}

// whole reports whether the pack has notices, and none that is cut short.
func (p *noticePack) whole() bool {
	end := 0
	for at, n := range p.all() {
		end = at + len(n)
	}
	return end > 0 && end == len(p.Packed)
}

// oldest is the earliest time of the pack's notices.
func (p *noticePack) oldest() (oldest int64) {
	for at, n := range p.all() {
		if at == 0 || n.at() < oldest {
			oldest = n.at()
		}
	}
	return oldest
}

// packedNotice is an encoded notice without its customer. First comes what is looked for: its
// length, its id, its time, and whether it is read. All else follows as a Notice.
type packedNotice []byte

const (
	packedID   = 4
	packedAt   = packedID + len(ids.ID{})
	packedRead = packedAt + 8
	packedRest = packedRead + 1
)

var noticeCodec = codec.New()

func packNotice(n *Notice) packedNotice {
	rest := *n
	rest.ID, rest.Customer, rest.At, rest.Read = ids.ID{}, "", 0, false
	buffer := bytes.NewBuffer(make([]byte, packedRest))
	if err := noticeCodec.Write(buffer, &rest); err != nil {
		panic(fmt.Sprintf("state: encode a notice: %v", err)) // a programmer's slip
	}
	p := packedNotice(buffer.Bytes())
	binary.BigEndian.PutUint32(p, uint32(len(p)))
	copy(p[packedID:], n.ID[:])
	binary.BigEndian.PutUint64(p[packedAt:], uint64(n.At))
	if n.Read {
		p[packedRead] = 1
	}
	return p
}

func (p packedNotice) id() ids.ID { return ids.ID(p[packedID:packedAt]) }
func (p packedNotice) at() int64  { return int64(binary.BigEndian.Uint64(p[packedAt:])) }
func (p packedNotice) read() bool { return p[packedRead] != 0 }

func (p packedNotice) unpack(customer string) *Notice {
	n := &Notice{}
	if err := noticeCodec.Unmarshal(p[packedRest:], n); err != nil {
		panic(fmt.Sprintf("state: decode a notice: %v", err)) // packNotice encoded it
	}
	n.ID, n.Customer, n.At, n.Read = p.id(), customer, p.at(), p.read()
	return n
}

// findNotice returns the pack of a customer's notice, nil when there is none, and the part of it
// that has the notice.
func (v *View) findNotice(customer string, id ids.ID) (in *noticePack, from, to int) {
	noticesTable.each(v, false, func(p *noticePack) bool {
		for at, n := range p.all() {
			if n.id() == id {
				in, from, to = p, at, at+len(n)
				return false
			}
		}
		return true
	}, "id_prefix", customer)
	return in, from, to
}

// Notice returns a customer's notice with an id, or nil.
func (v *View) Notice(customer string, id ids.ID) *Notice {
	in, from, to := v.findNotice(customer, id)
	if in == nil {
		return nil
	}
	return packedNotice(in.Packed[from:to]).unpack(in.Customer)
}

// Notices visits a customer's notices, newest first, until visit returns false.
func (v *View) Notices(customer string, visit func(*Notice) bool) {
	noticesTable.each(v, true, func(p *noticePack) bool {
		var packed []packedNotice
		for _, n := range p.all() {
			packed = append(packed, n)
		}
		for _, n := range slices.Backward(packed) {
			if !visit(n.unpack(p.Customer)) {
				return false
			}
		}
		return true
	}, "id_prefix", customer)
}

// OldestRead returns the oldest notice that a customer has read, nil when there is none.
func (v *View) OldestRead(customer string) (oldest *Notice) {
	noticesTable.each(v, false, func(p *noticePack) bool {
		for _, n := range p.all() {
			if n.read() {
				oldest = n.unpack(p.Customer)
				return false
			}
		}
		return true
	}, "id_prefix", customer)
	return oldest
}

// NoticesUntil lists at most so many notices of all customers that are not younger than a time.
func (v *View) NoticesUntil(at int64, most int) (old []*Notice) {
	noticesTable.each(v, false, func(p *noticePack) bool {
		if p.oldest() > at {
			return false
		}
		for _, n := range p.all() {
			if n.at() <= at && len(old) < most {
				old = append(old, n.unpack(p.Customer))
			}
		}
		return len(old) < most
	}, "age_prefix")
	return old
}

// CountNotices returns the number of all customers' notices, and how many bytes they take packed.
func (v *View) CountNotices() (count, size int) {
	noticesTable.each(v, false, func(p *noticePack) bool {
		for range p.all() {
			count++
		}
		size += len(p.Packed)
		return true
	}, "id_prefix")
	return count, size
}

// PutNotice adds a notice as its customer's newest, or replaces it.
func (t *Tx) PutNotice(n *Notice) {
	packed := packNotice(n)
	in, from, to := t.findNotice(n.Customer, n.ID)
	if in == nil {
		in = t.openPack(n.Customer, len(packed))
		from, to = len(in.Packed), len(in.Packed)
	}
	t.repack(in, from, to, packed)
	t.touch(n.Customer, Touch{What: TouchedNotice, ID: n.ID})
}

// openPack returns the pack that takes a customer's next notice, of so many bytes.
func (t *Tx) openPack(customer string, size int) *noticePack {
	next := &noticePack{Customer: t.nameOf(customer)}
	noticesTable.each(&t.View, true, func(p *noticePack) bool {
		if next.Number = p.Number + 1; len(p.Packed)+size <= packBytes {
			next = p
		}
		return false
	}, "id_prefix", customer)
	return next
}

// RemoveNotice removes a notice. It panics when there is no such notice, which only a programmer's
// slip can cause.
func (t *Tx) RemoveNotice(n *Notice) {
	in, from, to := t.findNotice(n.Customer, n.ID)
	if in == nil {
		panic("state: there is no such notice to remove")
	}
	t.repack(in, from, to, nil)
}

// repack replaces a part of a pack. An empty pack goes.
func (t *Tx) repack(p *noticePack, from, to int, by packedNotice) {
	next := *p
	next.Packed = slices.Concat(p.Packed[:from], by, p.Packed[to:])
	if len(next.Packed) == 0 {
		noticesTable.remove(t, p)
		return
	}
	noticesTable.put(t, &next)
}
