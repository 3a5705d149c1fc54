package detect

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"shoal.dev/shoal/bench/saved"
)

// shelf is the answer of a list of five products.
func shelf() Answer {
	return Answer{Count: 5, Items: []Item{
		{Title: "Oak table", Link: "https://a.example/oak", Price: "€ 1.299,00",
			ListPrice: "€ 1.499,00"},
		{Title: "Pine chair", Link: "https://a.example/pine", Price: "49,90 €"},
		{Title: "Elm shelf", Link: "https://a.example/elm", Price: "80 €"},
	}}
}

func shelfRows() [][]byte {
	return rowsOf(`{"title":"Oak  table","url":"https://a.example/oak#x","price":"1299",`+
		`"listPrice":1499}`,
		`{"title":"Pine chair","url":"https://a.example/pine","price":"49.90"}`,
		`{"title":"Ash stool","price":"20"}`, `{"title":"Yew bowl","price":"30"}`,
		`{"title":"Elm shelf","url":"https://a.example/elm/","price":"80.00"}`)
}

func rowsOf(rows ...string) [][]byte {
	var out [][]byte
	for _, row := range rows {
		out = append(out, []byte(row))
	}
	return out
}

func TestJudge(t *testing.T) {
	list := shelf()
	right := shelfRows()
	with := func(at int, row string) [][]byte {
		rows := shelfRows()
		rows[at] = []byte(row)
		return rows
	}
	for _, c := range []struct {
		name      string
		rows      [][]byte
		want      Verdict
		mispriced bool
	}{
		{"right", right, Right, false},
		{"a teaser more", append(shelfRows(), []byte(`{"title":"Teaser"}`)), Right, false},
		{"an escaped link", with(1,
			`{"title":"Pine chair","url":"https://a.example/p%69ne","price":"49.90"}`), Right, false},
		{"doubled", append(shelfRows(), shelfRows()...), Broken, false},
		{"no link", with(1, `{"title":"Pine chair","price":"49.90"}`), Broken, false},
		{"title within a text", with(1,
			`{"title":"Pine chair 49.90","url":"https://a.example/pine","price":"49.90"}`), Broken,
			false},
		{"another's price", with(1,
			`{"title":"Pine chair","url":"https://a.example/pine","price":"1299"}`), Broken, true},
		{"swapped prices", with(0, `{"title":"Oak table","url":"https://a.example/oak",`+
			`"price":"1499","listPrice":"1299"}`), Broken, false},
		{"regular price lost", with(0,
			`{"title":"Oak table","url":"https://a.example/oak","price":"1299"}`), Broken, false},
		{"the beginning", right[:2], Part, false},
		{"a menu", rowsOf(`{"title":"Tables"}`, `{"title":"Chairs"}`), Another, false},
		{"not in the page's order", rowsOf(string(right[4]), string(right[1]), string(right[0])),
			Part, false},
		{"nothing", nil, None, false},
	} {
		got := list.Judge(c.rows)
		if got.Verdict != c.want || got.Mispriced != c.mispriced {
			t.Errorf("%s: %s, mispriced %t; want %s, %t", c.name, got.Verdict, got.Mispriced,
				c.want, c.mispriced)
		}
	}
}

func TestJudgeOneItem(t *testing.T) {
	one := Answer{Items: []Item{{Title: "Oak table", Price: "12.50"}}}
	for row, want := range map[string]Verdict{
		`{"product":{"name":"Oak table","offers":[{"price":12.5}]}}`: Right,
		`{"title":"Oak table"}`:                   Broken,
		`{"title":"Oak table","price":"13.50"}`:   Broken,
		`{"title":"Others bought","price":"2.5"}`: Another,
	} {
		if got := one.Judge(rowsOf(row)); got.Verdict != want {
			t.Errorf("%s: %s, want %s", row, got.Verdict, want)
		}
	}
	two := rowsOf(`{"title":"Oak table","price":"12.50"}`, `{"title":"Pine chair"}`)
	if got := one.Judge(two); got.Verdict != Broken {
		t.Errorf("a list for one item: %s", got.Verdict)
	}
}

// TestAmountsAreOne: an amount is the same in every notation.
func TestAmountsAreOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		euros := rapid.IntRange(1, 999).Draw(t, "euros")
		cents := rapid.IntRange(0, 99).Draw(t, "cents")
		want := amount(fmt.Sprintf("%d.%02d", euros, cents))
		if got := amount(fmt.Sprintf("€ %d,%02d", euros, cents)); got != want {
			t.Errorf("%s, want %s", got, want)
		}
		if other := amount(fmt.Sprintf("%d.%02d", euros+1, cents)); other == want {
			t.Errorf("%s is two amounts", other)
		}
	})
	for _, same := range [][2]string{{"1.299,00 €", "1299"}, {"$1,299", "1299.00"},
		{"2.5", "2,50"}, {"free", ""}} {
		if a, b := amount(same[0]), amount(same[1]); a != b {
			t.Errorf("%s is %s, %s is %s", same[0], a, same[1], b)
		}
	}
}

func TestAgree(t *testing.T) {
	page := func(hash string, count int, next string, titles ...string) Entry {
		e := Entry{Source: saved.Source{SHA256: hash}, Answer: Answer{Count: count, Next: next}}
		for _, title := range titles {
			e.Items = append(e.Items, Item{Title: title})
		}
		return e
	}
	first := []Entry{page("a", 20, "", "One", "Two", "Last"),
		page("b", 20, "https://a.example/2", "One", "Two", "Last"), page("c", 0, "", "Only")}
	again := []Entry{page("a", 21, "", "One", "Two ", "Last"), page("b", 0, "", "One"),
		page("c", 0, "", "Other"), page("unknown", 0, "")}
	if got := Agree(first, again); got != (Agreement{Pages: 3, Lists: 2, Items: 1, Next: 2}) {
		t.Errorf("%+v", got)
	}
}
