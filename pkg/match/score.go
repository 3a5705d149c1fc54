package match

import (
	"math"
	"slices"
)

// What two products have in common, and what stands between them, as numbers from 0 to 1. Each is
// the same whichever of the two comes first.
const (
	bias         = iota // always 1
	alike               // weight of what is in both, of that of either
	contained           // the same, of that of the shorter
	squared             // the square of alike: few words in common say less than half as much
	sameCode            // how rare the rarest code of both is
	sameStem            // codes differ, but for letters at their end
	otherCode           // both have codes, and none in common
	sameModel           // the model of one is a code of the other
	otherBrand          // both have brands, and neither is in the other
	sameMeasure         // share of the dimensions in both that agree
	otherMeasure        // share of the dimensions in both that do not
	otherNumber         // of the one with fewer: share of its bare numbers that the other lacks
	otherColour         // share of its colours that the other does not have
	otherPack           // packs of different counts
	missing             // how rare the rarest token is that only one has: of the two the less
	features
)

// weights say what each counts. They are those of a logistic regression on the pairs of public sets
// that are for training, rounded (bench/match/README.md). What stands between brands and packs
// counts for more than there: those pairs hardly have any.
var weights = [features]float64{
	bias: -2.3, alike: 0.9, contained: 1.1, squared: 2, sameCode: 2.3, sameStem: 0.7,
	otherCode: -1.5, sameModel: 0.7, otherBrand: -1.5, sameMeasure: 0.9, otherMeasure: -1.5,
	otherNumber: -1.2, otherColour: -2.1, otherPack: -1.5, missing: -0.8,
}

// otherTrade is what two products lose whose trade numbers differ: each is of one product alone.
const otherTrade = -6.0

// otherAmount is what two products by mass or volume lose in packs of other counts. Twice 450 g is
// not 450 g, however alike they are. Among other goods words of packs say less.
const otherAmount = -6.0

const steps = 10_000 // of a score

// verdict is what comes of comparing two products.
type verdict struct {
	steps  int // of the score
	method Method
}

// compare says how sure it is that two products are one.
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

// featuresOf compares two products.
func featuresOf(a, b *card) [features]float64 {
	f := [features]float64{bias: 1}
	var seen, left, right [isStem]int // tokens of each class in both, in a alone, in b alone
	var common int
	var code, ofA, ofB uint8 // the rarest code of both, and the rarest tokens of one alone
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

// share is what one is of both.
func share(one, other int) float64 { return float64(one) / float64(one+other) }

func truth(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

// compareCodes fills in what codes and models say. seen, left and right count the codes that are in
// both, in a and in b.
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

// compareMeasures fills in what measures say: each dimension that both have agrees if they have one
// value of it in common.
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

// hasAmount says whether there is a mass or a volume.
func hasAmount(of []quantity) bool {
	return slices.ContainsFunc(of, func(q quantity) bool {
		return q.of() == mass || q.of() == volume
	})
}

// samePack says whether a has as many as b, or as much as all that b's pack has.
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

// near says whether a value is in both lists.
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

// sharesAny says whether two lists in order have anything in common.
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
