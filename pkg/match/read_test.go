package match

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"unicode/utf8"
)

func TestMeasuresAreRead(t *testing.T) {
	one := func(of dimension, values ...float64) []quantity {
		var list []quantity
		for _, v := range values {
			q, _ := quantityOf(of, v)
			list = append(list, q)
		}
		slices.Sort(list)
		return list
	}
	for _, c := range []struct {
		title string
		want  []quantity
		pack  uint16
	}{
		{"Cola 330ml", one(volume, 330), 0},
		{"Cola 0,33 l", one(volume, 330), 0},
		{"Cola 0.33L", one(volume, 330), 0},
		{"Cola 33 cl", one(volume, 330), 0},
		{"Cola 6 x 330 ml", one(volume, 330, 1980), 6},
		{"Cola 6x330ml", one(volume, 330, 1980), 6},
		{"Cola 6×0,33 l", one(volume, 330, 1980), 6},
		{"Cola 330 ml 6 pack", one(volume, 330), 6},
		{"Cola 330 ml, 6-pack", one(volume, 330), 6},
		{"Cola 330 ml, pack of 6", one(volume, 330), 6},
		{"Cola 330 ml, 6er Pack", one(volume, 330), 6},
		{"Cola, lot de 6", nil, 6},
		{"Servietten 50 Stück", nil, 50},
		{"Cola 12 fl oz", one(volume, 12*29.57353), 0},
		{"Reis 1,000 g", one(mass, 1000), 0},
		{"rice 2 lbs", one(mass, 907.18474), 0},
		{"TV 43\"", one(length, 43*25.4), 0},
		{"TV 43 Zoll", one(length, 43*25.4), 0},
		{"TV 43 ''", nil, 0},
		{"TV 43''", one(length, 43*25.4), 0},
		{"disk 2 TB", one(data, 2*1024*1024), 0},
		{"disque 2To", one(data, 2*1024*1024), 0},
		{"16GB/512GB", one(data, 16*1024, 512*1024), 0},
		{"120 x 80 cm", one(length, 1200, 800), 0},
		{"camera 7.2 megapixel", one(pixels, 7.2), 0},
		{"DSC-W120P 5g2 x100m", nil, 0},
		{"10 in a row", nil, 0},
		{"0 ml", nil, 0},
	} {
		var s sheet
		got := s.read(&Product{Title: c.title})
		same := len(got.quantities) == len(c.want) && got.pack == c.pack
		for i := range c.want {
			same = same && got.quantities[i].same(c.want[i])
		}
		if !same {
			t.Errorf("%q: %v pack %d, want %v pack %d", c.title, got.quantities, got.pack, c.want,
				c.pack)
		}
	}
}

// TestWritingsAreOne checks pairs of texts with the same tokens.
func TestWritingsAreOne(t *testing.T) {
	for _, c := range [][2]string{
		{"Crème Brûlée", "creme brulee"},
		{"Straße", "STRASSE"},
		{"PSL-X350H", "psl x350h pslx350h"},
		{"schwarze Schuhe", "black shoes"},
		{"speakers", "Speaker"},
		{"7,2", "7.2"},
		{"ｆｕｌｌ", "full"},
		{"0.5 l", "500ml"},
		{"1 TB", "1024GB"},
	} {
		var a, b sheet
		one, other := a.read(&Product{Title: c[0]}), b.read(&Product{Title: c[1]})
		for _, token := range one.tokens {
			if !has(other.tokens, token) {
				t.Errorf("%q has a token that %q has not", c[0], c[1])
			}
		}
		if len(one.tokens) == 0 {
			t.Errorf("%q has no token", c[0])
		}
	}
}

func TestTextsAreCut(t *testing.T) {
	for _, text := range []string{"é", "日本", "a", "\x93"} {
		long := ""
		for len(long) < MaxText+10 {
			long += text
		}
		for cut := range 5 {
			got := fold(nil, long[cut%len(text):])
			if len(got) > 2*MaxText || utf8.ValidString(long[cut%len(text):]) && !utf8.Valid(got) {
				t.Errorf("%q from %d: %d bytes", text, cut, len(got))
			}
		}
	}
}

func FuzzRead(f *testing.F) {
	for _, text := range []string{"6 x 330 ml", "PSL-X350H", "43\" TV 1,000.5", "1.2.3.4", "ﬃ́",
		"99999999999999999999 kg", "fl oz", "5fl", "pack of", "6 x 6 x 6 x", "\xff\xfe é"} {
		f.Add(text, text, text)
	}
	f.Fuzz(func(t *testing.T, title, brand, model string) {
		var s sheet
		c := s.read(&Product{Numbers: []string{title}, Title: title, Brand: brand, Model: model})
		if len(c.tokens) > maxTokens || len(c.stems) > maxTokens || len(c.brand) > maxTokens ||
			len(c.quantities) > maxQuantities || len(c.numbers) > maxNumbers {
			t.Fatalf("%+v is beyond its bounds", c)
		}
		if !slices.IsSorted(c.tokens) || !slices.IsSorted(c.quantities) {
			t.Fatalf("%+v is in no order", c)
		}
		x := &Index{logs: 5, terms: newTable(nil)}
		x.weigh(c)
		if v := compare(c, c); v.steps < 0 || v.steps > steps {
			t.Fatalf("a score of %d", v.steps)
		}
	})
}

func FuzzParseNumber(f *testing.F) {
	for _, text := range []string{"4006381333931", "0-306-40615-2", "080442957X", "x", "12 34"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		n, ok := ParseNumber(text)
		if ok != (n != 0) || uint64(n) >= uint64(math.Pow10(14)) {
			t.Fatalf("%q: %d %v", text, n, ok)
		}
		if ok && checkDigit(uint64(n)/10) != uint64(n)%10 {
			t.Fatalf("%q: %d has a wrong check digit", text, n)
		}
	})
}

func FuzzColumns(f *testing.F) {
	f.Add("EAN", "Désignation")
	f.Fuzz(func(t *testing.T, one, other string) {
		a, b := ColumnsOf([]string{one, other}), ColumnsOf([]string{other, one})
		if a != b {
			t.Fatalf("%+v, and in another order %+v", a, b)
		}
		a.Product(func(column string) string { return column })
	})
}

// TestCodesAreToldApart: different codes have different tokens, however many there are: a collision
// would be a wrong match with high confidence.
func TestCodesAreToldApart(t *testing.T) {
	seen := map[uint64]bool{}
	const codes = 200_000
	for n := range codes {
		seen[token(hashText(fmt.Appendf(nil, "zr%06d", n)), isCode)] = true
	}
	if len(seen) != codes {
		t.Errorf("%d of %d codes are like another", codes-len(seen), codes)
	}
}
