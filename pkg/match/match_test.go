package match_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"shoal.dev/shoal/pkg/match"
	"shoal.dev/shoal/pkg/match/matchtest"
)

func ExampleFinder_Find() {
	var catalogue match.Builder
	_ = catalogue.Add("cola-6", &match.Product{Title: "Fizz Cola 6 x 330 ml"})
	_ = catalogue.Add("cola-1", &match.Product{Title: "Fizz Cola 330 ml"})
	_ = catalogue.Add("tv", &match.Product{Brand: "Lumen", Model: "LX-43U7", Title: "TV 43 inch"})
	index, err := catalogue.Build()
	if err != nil {
		panic(err)
	}
	finder := index.Finder()
	for _, title := range []string{"FIZZ COLA 0,33 l", "Fizz Cola 33 cl, pack of 6",
		"Lumen LX43U7 43\" television", "a spoon"} {
		found, ok := finder.Find(&match.Product{Title: title})
		fmt.Println(found.ID, found.Method, ok)
	}
	// Output:
	// cola-1 title true
	// cola-6 title true
	// tv brand_model true
	//   false
}

// indexOf makes an index of products, added in an order.
func indexOf(t testing.TB, of matchtest.Catalogue, order []int) *match.Index {
	t.Helper()
	var b match.Builder
	for _, n := range order {
		id, p := of.Product(n)
		if err := b.Add(id, &p); err != nil {
			t.Fatal(err)
		}
	}
	x, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return x
}

func upTo(n int) []int {
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	return order
}

func TestProductsAreFound(t *testing.T) {
	const products, rows = 20_000, 2_000
	of := matchtest.New(1)
	finder := indexOf(t, of, upTo(products)).Finder()
	right, wrong, slow, same := 0, 0, 0, 0
	for n := range rows {
		row := of.Row(n * (products / rows))
		found, ok := finder.Find(&row)
		id, _ := of.Product(n * (products / rows))
		switch {
		case ok && found.ID == id:
			right++
		case ok:
			wrong++
		}
		if n%10 == 0 {
			if all, ok := finder.FindSlowly(&row); ok {
				slow++
				if all == found {
					same++
				}
			}
		}
	}
	t.Logf("%d rows: %d right, %d wrong; of %d that are found slowly %d are found", rows, right,
		wrong, slow, same)
	if right < rows*7/10 || wrong > rows/10 {
		t.Errorf("%d of %d rows are right and %d wrong", right, rows, wrong)
	}
	if same*100 < slow*95 {
		t.Errorf("%d of %d rows that are found slowly are found", same, slow)
	}
}

// TestRowsOfNoProductAreNotFound searches rows of another catalogue.
func TestRowsOfNoProductAreNotFound(t *testing.T) {
	finder := indexOf(t, matchtest.New(1), upTo(20_000)).Finder()
	other, found := matchtest.New(99), 0
	for n := range 2_000 {
		row := other.Row(n)
		row.Numbers = nil // both number from one
		if _, ok := finder.Find(&row); ok {
			found++
		}
	}
	if found > 20 {
		t.Errorf("%d of 2,000 rows of other products are found", found)
	}
}

func TestScoresAreSymmetric(t *testing.T) {
	of := matchtest.New(3)
	finder := indexOf(t, of, upTo(500)).Finder()
	for n := range 4_000 {
		_, a := of.Product(n % 500)
		b := of.Row(n * 7 % 500)
		ab, by := finder.Score(&a, &b)
		ba, yb := finder.Score(&b, &a)
		if ab != ba || by != yb {
			t.Fatalf("%v and %v: %v %v, and %v %v", a, b, ab, by, ba, yb)
		}
		if ab < 0 || ab > 1 {
			t.Fatalf("%v and %v: %v", a, b, ab)
		}
	}
}

func TestOrderChangesNothing(t *testing.T) {
	const products = 3_000
	of := matchtest.New(4)
	order := upTo(products)
	want := indexOf(t, of, order).Finder()
	rand.New(rand.NewPCG(1, 2)).Shuffle(products, func(i, j int) {
		order[i], order[j] = order[j], order[i]
	})
	got := indexOf(t, of, order).Finder()
	for n := range products {
		row := of.Row(order[n])
		a, found := want.Find(&row)
		b, also := got.Find(&row)
		if a != b || found != also {
			t.Fatalf("%v: %v, and in another order %v", row, a, b)
		}
	}
}

func TestMatches(t *testing.T) {
	var b match.Builder
	for id, p := range map[string]match.Product{
		"shoe-black": {Brand: "Strider", Title: "Strider Runner shoes black",
			Numbers: []string{"4006381333931"}},
		"shoe-white": {Brand: "Strider", Title: "Strider Runner shoes white"},
		"disk-1tb":   {Title: "Vault portable disk 1 TB"},
		"disk-2tb":   {Title: "Vault portable disk 2TB"},
		"flour":      {Title: "Mill & Co Wheat Flour 500g"},
		"flour-2":    {Title: "Mill & Co Wheat Flour 1 kg"},
		"cam":        {Brand: "Optik", Model: "DSC-W120P", Title: "Optik compact camera"},
		"cam-other":  {Brand: "Visio", Model: "DSC-W120P", Title: "Visio compact camera"},
		"book":       {Title: "The long road", Numbers: []string{"0-306-40615-2"}},
	} {
		if err := b.Add(id, &p); err != nil {
			t.Fatal(err)
		}
	}
	x, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	finder := x.Finder()
	for _, c := range []struct {
		row    match.Product
		id     string
		method match.Method
	}{
		{match.Product{Title: "Strider Runner Schuhe schwarz"}, "shoe-black", match.ByTitle},
		{match.Product{Title: "Strider Runner chaussures blanc"}, "shoe-white", match.ByTitle},
		{match.Product{Title: "something else", Numbers: []string{"04006381333931"}}, "shoe-black",
			match.ByNumber},
		{match.Product{Title: "Strider Runner shoes black", Numbers: []string{"4006381333948"}},
			"", ""},
		{match.Product{Title: "VAULT portable disk 1024 GB"}, "disk-1tb", match.ByTitle},
		{match.Product{Title: "Vault portable disk 2 To"}, "disk-2tb", match.ByTitle},
		{match.Product{Title: "Mill & Co wheat flour 0.5 kg"}, "flour", match.ByTitle},
		{match.Product{Title: "Mill & Co wheat flour 1000 g"}, "flour-2", match.ByTitle},
		{match.Product{Title: "Optik DSCW120P"}, "cam", match.ByModel},
		{match.Product{Brand: "VISIO", Title: "compact camera dsc-w120p"}, "cam-other",
			match.ByModel},
		{match.Product{Title: "x", Numbers: []string{"9780306406157"}}, "book", match.ByNumber},
		{match.Product{}, "", ""},
	} {
		found, _ := finder.Find(&c.row)
		if found.ID != c.id || found.Method != c.method {
			t.Errorf("%+v: %+v, want %s by %s", c.row, found, c.id, c.method)
		}
	}
}

// TestPacksDiffer: for goods by mass or volume, only a pack of the same count or the same total
// amount matches, however the count is written.
func TestPacksDiffer(t *testing.T) {
	const one, two, all = "Brew Gold instant coffee 450 g jar",
		"Brew Gold instant coffee 2 x 450 g jar", "Brew Gold instant coffee 900 g jar"
	for _, c := range []struct {
		product, row string
		same         bool
	}{
		{one, two, false}, {two, one, false}, {one, "Brew Gold coffee 2x450g", false},
		{one, "Brew Gold instant coffee jar 450 g, pack of 2", false},
		{two, "Brew Gold instant coffee 3 x 450 g jar", false},
		{"Fizz Cola 330 ml", "Fizz Cola 6 x 330 ml", false},
		{"Fizz Cola 6 x 33 cl", "Fizz Cola 330 ml, pack of 6", true},
		{one, "Brew Gold instant coffee 1 x 450 g jar", true}, {two, two, true}, {all, two, true},
		{two, all, true}, {two, "Brew Gold instant coffee jar 450 g, pack of 2", true},
		{"Mill whisk, steel", "Mill whisk, steel, pack of 2", true}, // only pack words
	} {
		var b match.Builder
		for id, title := range []string{c.product, "a spoon", "a fork of 3 kg"} {
			if err := b.Add(fmt.Sprint(id), &match.Product{Title: title}); err != nil {
				t.Fatal(err)
			}
		}
		x, err := b.Build()
		if err != nil {
			t.Fatal(err)
		}
		if found, ok := x.Finder().Find(&match.Product{Title: c.row}); ok != c.same {
			t.Errorf("%q, and %q is sought: %+v", c.product, c.row, found)
		}
	}
}

func TestBounds(t *testing.T) {
	var b match.Builder
	for _, id := range []string{"", strings.Repeat("x", match.MaxID+1)} {
		if err := b.Add(id, &match.Product{}); !errors.Is(err, match.ErrID) {
			t.Errorf("an id of %d bytes: %v", len(id), err)
		}
	}
	long := match.Product{Title: strings.Repeat("wörter 12 kg, ", 10_000), Brand: "b",
		Model: strings.Repeat("m", 99)}
	for _, id := range []string{strings.Repeat("x", match.MaxID), "b"} {
		if err := b.Add(id, &long); err != nil {
			t.Fatal(err)
		}
	}
	x, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	if found, ok := x.Finder().Find(&long); !ok || found.ID != "b" || x.Products() != 2 {
		t.Errorf("%v: %v", found, ok)
	}
	b = match.Builder{}
	for range 2 {
		if err := b.Add("twice", &long); err != nil {
			t.Fatal(err)
		}
	}
	twice := (*match.DuplicateError)(nil)
	if _, err := b.Build(); !errors.As(err, &twice) || twice.ID != "twice" {
		t.Errorf("one id twice: %v", err)
	}
	b = match.Builder{}
	if x, err = b.Build(); err != nil {
		t.Fatal(err)
	}
	if _, ok := x.Finder().Find(&long); ok || x.Products() != 0 {
		t.Error("something is found in an empty catalogue")
	}
}

func TestCatalogueIsFull(t *testing.T) {
	var b match.Builder
	for n := range match.MaxProducts {
		if err := b.Add(fmt.Sprint(n), &match.Product{}); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.Add("more", &match.Product{}); !errors.Is(err, match.ErrFull) {
		t.Errorf("product %d: %v", match.MaxProducts+1, err)
	}
}

func TestColumnsOf(t *testing.T) {
	for _, c := range []struct {
		columns []string
		want    match.Columns
	}{
		{[]string{"id", "EAN", "Marke", "Modell", "Bezeichnung"},
			match.Columns{ID: "id", Number: "EAN", Brand: "Marke", Model: "Modell",
				Title: "Bezeichnung"}},
		{[]string{"Référence", "Désignation", "Code-barres", "Fabricant"},
			match.Columns{Number: "Code-barres", Brand: "Fabricant", Model: "Référence",
				Title: "Désignation"}},
		{[]string{"name", "title", "ean", "gtin_13"},
			match.Columns{Number: "gtin_13", Title: "title"}},
		{[]string{"Title", "title"}, match.Columns{Title: "Title"}},
		{[]string{"price", "url"}, match.Columns{}},
	} {
		if got := match.ColumnsOf(c.columns); got != c.want {
			t.Errorf("%q: %+v, want %+v", c.columns, got, c.want)
		}
	}
}

func TestParseNumber(t *testing.T) {
	for text, want := range map[string]match.Number{
		"4006381333931": 4006381333931, "04006381333931": 4006381333931,
		"0 36000 29145 2": 36000291452, "036000291452": 36000291452, "36000291452": 36000291452,
		"36000291453": 0, "96385074": 96385074,
		"0-306-40615-2": 9780306406157, "080442957X": 9780804429573,
		"978-0-306-40615-7": 9780306406157,
		"10012345678902":    10012345678902,
		"4006381333932":     0, "": 0, "0000000000000": 0, "2012345678900": 0, "00000000": 0,
		"080442957Y": 0, "X804429570": 0, "080442957X1": 0, "123456789012345": 0, "abc": 0,
	} {
		if got, ok := match.ParseNumber(text); got != want || ok != (want != 0) {
			t.Errorf("%q: %d %v, want %d", text, got, ok, want)
		}
	}
}
