package match

import (
	"cmp"
	"slices"
)

// Finder looks up rows in an index. Only one goroutine may use it.
type Finder struct {
	index  *Index
	sheet  sheet
	keys   keyring
	other  card
	shared []shared
}

// shared is a product that shares keys with a row.
type shared struct {
	product uint32
	weight  uint32 // of the shared keys: integers, whose sum does not depend on the order
}

// Finder makes a Finder.
func (x *Index) Finder() *Finder { return &Finder{index: x} }

// Find returns the product of a row: the most similar one, of equals the one with the least id. It
// is false if none is similar enough.
func (f *Finder) Find(row *Product) (Match, bool) {
	f.read(row)
	best := best{index: f.index}
	for _, s := range f.candidates() {
		f.index.card(s.product, &f.other)
		best.keepBetter(s.product, compare(&f.sheet.card, &f.other))
	}
	return best.match()
}

// FindSlowly returns what Find would if it compared the row with every product. It serves to
// measure Find.
func (f *Finder) FindSlowly(row *Product) (Match, bool) {
	f.read(row)
	best := best{index: f.index}
	for p := range uint32(len(f.index.records)) {
		f.index.card(p, &f.other)
		best.keepBetter(p, compare(&f.sheet.card, &f.other))
	}
	return best.match()
}

// Score returns how similar two products are, weighted by what is rare in the catalogue. It is
// symmetric.
func (f *Finder) Score(a, b *Product) (float64, Method) {
	var second sheet
	other := second.read(b)
	f.index.weigh(other)
	f.read(a)
	v := compare(&f.sheet.card, other)
	return float64(v.steps) / steps, v.method
}

// read makes the card of a row.
func (f *Finder) read(row *Product) { f.index.weigh(f.sheet.read(row)) }

// candidates returns the products that share the rarest keys with the row.
func (f *Finder) candidates() []shared {
	f.shared = f.shared[:0]
	for _, key := range f.keys.of(f.index, &f.sheet.card) {
		block := f.index.block(key)
		if len(block) == 0 || len(block) > mostShared {
			continue
		}
		weight := uint32(1<<16) / uint32(len(block)+3)
		for _, e := range block {
			f.shared = append(f.shared, shared{product: uint32(e), weight: weight})
		}
	}
	slices.SortFunc(f.shared, func(a, b shared) int { return cmp.Compare(a.product, b.product) })
	kept := f.shared[:0]
	for _, s := range f.shared {
		if n := len(kept); n > 0 && kept[n-1].product == s.product {
			kept[n-1].weight += s.weight
		} else {
			kept = append(kept, s)
		}
	}
	if len(kept) > candidates {
		slices.SortFunc(kept, func(a, b shared) int {
			return cmp.Or(cmp.Compare(b.weight, a.weight),
				cmp.Compare(f.index.ranks[a.product], f.index.ranks[b.product]))
		})
		kept = kept[:candidates]
	}
	return kept
}

// best keeps the most similar product.
type best struct {
	index   *Index
	verdict verdict
	product uint32
}

func (b *best) keepBetter(p uint32, v verdict) {
	if v.steps > b.verdict.steps ||
		v.steps == b.verdict.steps && b.index.ranks[p] < b.index.ranks[b.product] {
		b.verdict, b.product = v, p
	}
}

func (b *best) match() (Match, bool) {
	if b.verdict.steps < Threshold*steps {
		return Match{}, false
	}
	return Match{ID: string(b.index.idOf(b.product)), Score: float64(b.verdict.steps) / steps,
		Method: b.verdict.method}, true
}
