package match

import (
	"cmp"
	"math"
	"slices"
)

// A block is the products that share a key: a trade number, a rare token, or several common tokens.
const (
	rareTokens = 96  // the most products of a token that alone is a key
	mostShared = 512 // the most products of a block that are read
	paired     = 6   // number of rarest tokens that form keys in pairs
	tripled    = 5   // number of tokens that form keys in threes
	candidates = 64  // products compared with a row: those with the rarest keys
)

// record locates a product's card.
type record struct {
	at, id, number                          uint32 // in words, ids and numbers
	model                                   uint64
	weight, pack, idBytes                   uint16
	tokens, stems, brand, quantity, numbers uint8
}

// Builder collects the products of a catalogue.
type Builder struct {
	sheet   sheet
	records []record
	words   []uint64
	ids     []byte
	numbers []Number
}

// Add adds a product. Its errors are ErrFull and ErrID.
func (b *Builder) Add(id string, p *Product) error {
	switch {
	case id == "" || len(id) > MaxID:
		return ErrID
	case len(b.records) == MaxProducts:
		return ErrFull
	}
	c := b.sheet.read(p)
	b.records = append(b.records, record{at: uint32(len(b.words)), id: uint32(len(b.ids)),
		number: uint32(len(b.numbers)), model: c.model, pack: c.pack, idBytes: uint16(len(id)),
		tokens: uint8(len(c.tokens)), stems: uint8(len(c.stems)), brand: uint8(len(c.brand)),
		quantity: uint8(len(c.quantities)), numbers: uint8(len(c.numbers))})
	b.words = append(append(append(b.words, c.tokens...), c.stems...), c.brand...)
	for _, q := range c.quantities {
		b.words = append(b.words, uint64(q))
	}
	b.ids = append(b.ids, id...)
	b.numbers = append(b.numbers, c.numbers...)
	return nil
}

// Build returns the index of the added products. The builder is used up. The error is a
// *DuplicateError.
func (b *Builder) Build() (*Index, error) {
	x := &Index{records: b.records, words: b.words, ids: b.ids, numbers: b.numbers}
	b.records, b.words, b.ids, b.numbers = nil, nil, nil, nil
	if err := x.rankProducts(); err != nil {
		return nil, err
	}
	x.countTokens()
	x.weighProducts()
	x.fillBlocks()
	return x, nil
}

// Index is a searchable catalogue. It never changes, and any number of Finders may share it.
type Index struct {
	records []record
	words   []uint64
	ids     []byte
	numbers []Number
	ranks   []uint32 // of products by their ids: the tie-breaker
	rare    []uint8  // rarity of each word, parallel to words
	terms   table    // tokens, with the number of products of each
	blocks  []uint64 // key in the upper half, product in the lower, sorted
	starts  []uint32 // starts of the blocks whose keys share their upper bits
	logs    float64  // logarithm of the number of products
}

// Products returns the number of products.
func (x *Index) Products() int { return len(x.records) }

func (x *Index) idOf(p uint32) []byte {
	r := &x.records[p]
	return x.ids[r.id : r.id+uint32(r.idBytes)]
}

// rankProducts orders the products by their ids.
func (x *Index) rankProducts() error {
	order := make([]uint32, len(x.records))
	for i := range order {
		order[i] = uint32(i)
	}
	slices.SortFunc(order, func(a, b uint32) int {
		return slices.Compare(x.idOf(a), x.idOf(b))
	})
	x.ranks = make([]uint32, len(order))
	for rank, p := range order {
		if rank > 0 && slices.Equal(x.idOf(p), x.idOf(order[rank-1])) {
			return &DuplicateError{ID: string(x.idOf(p))}
		}
		x.ranks[p] = uint32(rank)
	}
	return nil
}

// card fills in c with the card of a product.
func (x *Index) card(p uint32, c *card) {
	r := &x.records[p]
	at := r.at
	take := func(n uint8) []uint64 {
		list := x.words[at : at+uint32(n) : at+uint32(n)]
		at += uint32(n)
		return list
	}
	c.rare = x.rare[at : at+uint32(r.tokens)]
	c.tokens, c.stems, c.brand = take(r.tokens), take(r.stems), take(r.brand)
	c.quantities = c.quantities[:0]
	for _, q := range take(r.quantity) {
		c.quantities = append(c.quantities, quantity(q))
	}
	c.numbers = x.numbers[r.number : r.number+uint32(r.numbers)]
	c.pack, c.model, c.weight = r.pack, r.model, uint32(r.weight)
}

// countTokens counts the products of each token.
func (x *Index) countTokens() {
	total := 0
	for i := range x.records {
		total += int(x.records[i].tokens) + int(x.records[i].stems)
	}
	all := make([]uint64, 0, total)
	for i := range x.records {
		r := &x.records[i]
		all = append(all, x.words[r.at:r.at+uint32(r.tokens)+uint32(r.stems)]...)
	}
	slices.Sort(all)
	x.terms = newTable(all)
	x.logs = math.Log(float64(len(x.records)) + 2)
}

// rarest is the rarity of a token that at most one product has.
const rarest = 250

// rarity returns how rare a token is, from 1 to rarest.
func (x *Index) rarity(token uint64) uint8 {
	lacking := x.logs - math.Log(float64(max(x.terms.count(token), 1)))
	share := (0.1 + lacking) / (0.1 + x.logs) * classWeights[classOf(token)]
	return uint8(math.Round(1 + share*(rarest-1)))
}

// classWeights are the weights of token classes, relative to words.
var classWeights = [...]float64{isWord: 1, isNumber: 0.7, isCode: 1, isMeasure: 0.7, isColour: 0.6,
	isStem: 0}

func (x *Index) weighProducts() {
	x.rare = make([]uint8, len(x.words))
	for i := range x.records {
		r := &x.records[i]
		for at := r.at; at < r.at+uint32(r.tokens); at++ {
			x.rare[at] = x.rarity(x.words[at])
			r.weight += uint16(x.rare[at])
		}
	}
}

// weigh fills in the rarities of a card's tokens.
func (x *Index) weigh(c *card) {
	c.rare, c.weight = c.rare[:0], 0
	for _, t := range c.tokens {
		c.rare = append(c.rare, x.rarity(t))
		c.weight += uint32(c.rare[len(c.rare)-1])
	}
}

// fillBlocks notes the products of each key.
func (x *Index) fillBlocks() {
	var c card
	var keys keyring
	total := 0
	for pass := range 2 {
		if pass == 1 {
			x.blocks = make([]uint64, 0, total)
		}
		for p := range uint32(len(x.records)) {
			x.card(p, &c)
			for _, key := range keys.of(x, &c) {
				if total++; pass == 1 {
					x.blocks = append(x.blocks, uint64(key)<<32|uint64(p))
				}
			}
		}
	}
	slices.Sort(x.blocks)
	x.starts = make([]uint32, 1<<startBits+1)
	at := 0
	for i := range x.starts {
		for at < len(x.blocks) && x.blocks[at]>>(64-startBits) < uint64(i) {
			at++
		}
		x.starts[i] = uint32(at)
	}
}

const startBits = 20

// block returns the products of a key, as stored in blocks.
func (x *Index) block(key uint32) []uint64 {
	bucket := key >> (32 - startBits)
	list := x.blocks[x.starts[bucket]:x.starts[bucket+1]]
	from, _ := slices.BinarySearchFunc(list, uint64(key), func(e, key uint64) int {
		return cmp.Compare(e>>32, key)
	})
	to := from
	for to < len(list) && to-from <= mostShared && list[to]>>32 == uint64(key) {
		to++
	}
	return list[from:to]
}

// keyring makes the keys of products.
type keyring struct {
	common []counted
	keys   []uint32
}

type counted struct {
	token uint64
	count uint32
}

// of returns the keys under which a product is stored and searched, valid until the next call.
func (k *keyring) of(x *Index, c *card) []uint32 {
	k.keys, k.common = k.keys[:0], k.common[:0]
	for _, n := range c.numbers {
		k.keys = append(k.keys, uint32(hashNumber(uint64(n))>>32))
	}
	for _, list := range [2][]uint64{c.tokens, c.stems} {
		for _, t := range list {
			switch count := x.terms.count(t); {
			case count <= rareTokens:
				k.keys = append(k.keys, uint32(hashNumber(t)>>32))
			case classOf(t) != isStem:
				k.common = append(k.common, counted{token: t, count: count})
			}
		}
	}
	slices.SortFunc(k.common, func(a, b counted) int {
		return cmp.Or(cmp.Compare(a.count, b.count), cmp.Compare(a.token, b.token))
	})
	k.common = k.common[:min(len(k.common), paired)]
	slices.SortFunc(k.common, func(a, b counted) int { return cmp.Compare(a.token, b.token) })
	for i, a := range k.common {
		for j, b := range k.common[:i] {
			pair := mix(a.token) ^ b.token
			k.keys = append(k.keys, uint32(hashNumber(pair)>>32))
			for _, third := range k.common[:j] {
				triple := mix(pair) ^ third.token
				k.keys = append(k.keys, uint32(hashNumber(triple)>>32))
			}
		}
	}
	return k.keys
}
