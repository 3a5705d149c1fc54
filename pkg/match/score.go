package match

import (
	"math"
	"slices"
)

// Similarities and differences of two products, as numbers from 0 to 1. All are symmetric.
const (
	bias         = iota // always 1
	alike               // weight of the common tokens, relative to that of all tokens
	contained           // the same, relative to that of the lighter product
	squared             // the square of alike: a few common words say less than half as much
	sameCode            // how rare the rarest common code is
	sameStem            // codes differ only in letters at their end
	otherCode           // both have codes, but none in common
	sameModel           // the model of one is a code of the other
	otherBrand          // both have brands, and neither is in the other
	sameMeasure         // share of the common dimensions that agree
	otherMeasure        // share of the common dimensions that differ
	otherNumber         // of the product with fewer: share of its bare numbers that the other lacks
	otherColour         // share of its colours that the other lacks
	otherPack           // packs of different counts
	missing             // how rare the rarest token is that only one has: the lesser of the two
	features
)

// weights are the weights of the features, from a logistic regression on the training pairs of
// public data sets, rounded (bench/match/README.md). Differences of brands and packs weigh more
// than in the regression, since those pairs hardly have any.
var weights = [features]float64{
	bias: -2.3, alike: 0.9, contained: 1.1, squared: 2, sameCode: 2.3, sameStem: 0.7,
	otherCode: -1.5, sameModel: 0.7, otherBrand: -1.5, sameMeasure: 0.9, otherMeasure: -1.5,
	otherNumber: -1.2, otherColour: -2.1, otherPack: -1.5, missing: -0.8,
}

// otherTrade is the penalty for different trade numbers: each identifies one product.
const otherTrade = -6.0

// otherAmount is the penalty for different pack sizes, if products have a mass or volume. Twice 450
// g is not 450 g, however similar the rest is. For other goods, pack words say less.
const otherAmount = -6.0

const steps = 10_000 // of a score

// verdict is the result of comparing two products.
type verdict struct {
	steps  int // of the score
	method Method
}

// compare returns how certain it is that two products are the same.
func compare(a, b *card) verdict {
	if sharesAny(a.numbers, b.numbers) {
		return verdict{steps: steps, method: ByNumber}
	}
	f := featuresOf(a, b)
	sum := 0.0
	for i := range f {
		sum += float64(f[i] * weights[i]) // float64: no fused operation, the same on every machine
	}
	if len(a.numbers) > 0 && len(b.numbers) > 0 {
		sum += otherTrade
	}
	if f[otherPack] > 0 && hasAmount(a.quantities) && hasAmount(b.quantities) {
		sum += otherAmount
	}
	v := verdict{steps: int(math.Round(steps / (1 + math.Exp(-sum)))), method: ByTitle}
	if (f[sameCode] > 0 || f[sameModel] > 0) && f[otherBrand] == 0 {
		v.method = ByModel
	}
	v.steps = min(v.steps, steps-1) // only a trade number is certain
	return v
}

// featuresOf returns the features of two products.
func featuresOf(a, b *card) [features]float64 {
	f := [features]float64{bias: 1}
	var seen, left, right [isStem]int // tokens of each class: in both, only in a, only in b
	var common int
	var code, ofA, ofB uint8 // the rarest common code, and the rarest tokens of each one alone
	for i, j := 0, 0; i < len(a.tokens) || j < len(b.tokens); {
		switch {
		case j == len(b.tokens) || i < len(a.tokens) && a.tokens[i] < b.tokens[j]:
			left[classOf(a.tokens[i])]++
			ofA = max(ofA, a.rare[i])
			i++
		case i == len(a.tokens) || b.tokens[j] < a.tokens[i]:
			right[classOf(b.tokens[j])]++
			ofB = max(ofB, b.rare[j])
			j++
		default:
			of := classOf(a.tokens[i])
			seen[of]++
			common += int(a.rare[i])
			if of == isCode {
				code = max(code, a.rare[i])
			}
			i++
			j++
		}
	}
	f[sameCode] = float64(code) / rarest
	f[missing] = float64(min(ofA, ofB)) / rarest
	if shorter := min(a.weight, b.weight); shorter > 0 {
		f[alike] = 2 * float64(common) / float64(a.weight+b.weight)
		f[contained] = float64(common) / float64(shorter)
		f[squared] = float64(f[alike] * f[alike])
	}
	compareCodes(&f, a, b, seen[isCode], left[isCode], right[isCode])
	compareBrands(&f, a, b)
	compareMeasures(&f, a.quantities, b.quantities)
	if fewer := min(left[isNumber], right[isNumber]); fewer+seen[isNumber] > 0 {
		f[otherNumber] = share(fewer, seen[isNumber])
	}
	if fewer := min(left[isColour], right[isColour]); fewer+seen[isColour] > 0 {
		f[otherColour] = share(fewer, seen[isColour])
	}
	f[otherPack] = truth(!samePack(a, b) && !samePack(b, a))
	return f
}

// share returns the part that one has of the sum.
func share(one, other int) float64 { return float64(one) / float64(one+other) }

func truth(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

// compareCodes fills in the features of codes and models. seen, left and right count the codes in
// both products, only in a and only in b.
func compareCodes(f *[features]float64, a, b *card, seen, left, right int) {
	f[sameModel] = truth(a.model != 0 && has(b.tokens, a.model) ||
		b.model != 0 && has(a.tokens, b.model))
	if seen > 0 {
		return
	}
	f[sameStem] = truth(sharesAny(a.stems, b.stems))
	f[otherCode] = truth(left > 0 && right > 0 && f[sameStem] == 0)
}

func compareBrands(f *[features]float64, a, b *card) {
	found := false
	for _, pair := range [2][2]*card{{a, b}, {b, a}} {
		for _, word := range pair[0].brand {
			found = found || has(pair[1].tokens, word)
		}
	}
	f[otherBrand] = truth(!found && len(a.brand) > 0 && len(b.brand) > 0)
}

// compareMeasures fills in the features of measures: a common dimension agrees if both have a
// common value in it.
func compareMeasures(f *[features]float64, a, b []quantity) {
	agree, differ := 0.0, 0.0
	for i, j := 0, 0; i < len(a) && j < len(b); {
		of := min(a[i].of(), b[j].of())
		from, to := i, j
		for i < len(a) && a[i].of() == of {
			i++
		}
		for j < len(b) && b[j].of() == of {
			j++
		}
		if i == from || j == to {
			continue
		}
		if near(a[from:i], b[to:j]) {
			agree++
		} else {
			differ++
		}
	}
	if all := agree + differ; all > 0 {
		f[sameMeasure], f[otherMeasure] = agree/all, differ/all
	}
}

// hasAmount reports whether there is a mass or a volume.
func hasAmount(of []quantity) bool {
	return slices.ContainsFunc(of, func(q quantity) bool {
		return q.of() == mass || q.of() == volume
	})
}

// samePack reports whether a has the count of b's pack, or its total amount.
func samePack(a, b *card) bool {
	if max(a.pack, 1) == max(b.pack, 1) {
		return true
	}
	if a.pack > 1 || b.pack < 2 {
		return false
	}
	more := quantity(math.Round(math.Log(float64(b.pack)) * perUnit))
	for _, q := range b.quantities {
		if near(a.quantities, []quantity{q + more}) {
			return true
		}
	}
	return false
}

// near reports whether the lists have a common value.
func near(a, b []quantity) bool {
	for _, one := range a {
		for _, other := range b {
			if one.same(other) {
				return true
			}
		}
	}
	return false
}

// sharesAny reports whether two sorted lists have a common element.
func sharesAny[T uint64 | Number](a, b []T) bool {
	for i, j := 0, 0; i < len(a) && j < len(b); {
		switch {
		case a[i] < b[j]:
			i++
		case b[j] < a[i]:
			j++
		default:
			return true
		}
	}
	return false
}

func has(list []uint64, token uint64) bool {
	for _, one := range list {
		if one == token {
			return true
		}
	}
	return false
}
