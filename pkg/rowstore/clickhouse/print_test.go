package clickhouse

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"shoal.dev/shoal/pkg/filter"
	"shoal.dev/shoal/pkg/ids"
	"shoal.dev/shoal/pkg/rowstore"
	"shoal.dev/shoal/pkg/rowstore/rowstoretest"
)

// short abbreviates the parts of the field a.
var short = strings.NewReplacer("`f7.kind`[indexOf(`f7.key`, 'a')]", "KIND",
	"`f7.num`[indexOf(`f7.key`, 'a')]", "NUM",
	"`f7.text`[indexOf(`f7.key`, 'a')]", "TEXT")

// TestPrintFilter checks the SQL of every operator.
func TestPrintFilter(t *testing.T) {
	if want := "`f7.num`[indexOf(`f7.key`, 'a')]"; column("a", "num") != want {
		t.Fatalf("field a is %s: the buckets of a schema never change", column("a", "num"))
	}
	tests := []struct{ filter, want string }{
		{`{}`, `1`},
		{`{"a":1}`, `(NUM = 1.)`},
		{`{"a":-0.0}`, `(KIND >= 6 AND NUM = 0.)`},
		{`{"a":"x\"'\\\u0000"}`, `(TEXT = 'x"\'\\\0')`},
		{`{"a":null}`, `KIND IN (0,1)`},
		{`{"a":{"ne":true}}`, `NOT KIND = 3`},
		{`{"a":{"in":[1.5,"x",1e21,null,false]}}`,
			`((NUM IN (1.5,1e+21)) OR (TEXT = 'x') OR KIND IN (0,1,2))`},
		{`{"a":{"in":["",0]}}`, `((KIND >= 6 AND NUM = 0.) OR (KIND IN (5, 7) AND TEXT = ''))`},
		{`{"a":{"nin":[]}}`, `NOT 0`},
		{`{"a":{"gt":1}}`, `(NUM > 1.)`},
		{`{"a":{"gt":0}}`, `(NUM > 0.)`},
		{`{"a":{"gt":-1}}`, `(KIND >= 6 AND NUM > -1.)`},
		{`{"a":{"gte":0}}`, `(KIND >= 6 AND NUM >= 0.)`},
		{`{"a":{"lt":0}}`, `(NUM < 0.)`},
		{`{"a":{"lte":0}}`, `(KIND >= 6 AND NUM <= 0.)`},
		{`{"a":{"lte":-1}}`, `(NUM <= -1.)`},
		{`{"a":{"lte":"x"}}`, `(KIND IN (5, 7) AND TEXT <= 'x')`},
		{`{"a":{"lt":""}}`, `(TEXT < '')`},
		{`{"a":{"gte":""}}`, `(KIND IN (5, 7) AND TEXT >= '')`},
		{`{"a":{"gt":""}}`, `(TEXT > '')`},
		{`{"a":{"between":[1,2]}}`, `((NUM >= 1.) AND (NUM <= 2.))`},
		{`{"a":{"between":[-1,2]}}`, `((KIND >= 6 AND NUM >= -1.) AND (KIND >= 6 AND NUM <= 2.))`},
		{`{"a":{"gte":1,"lt":2}}`, `((NUM >= 1.) AND (NUM < 2.))`},
		{`{"$and":[{"a":{"gt":1}},{"$nor":[{"a":{"lt":2}}]}]}`,
			`((NUM > 1.) AND NOT ((NUM < 2.)))`},
		{`{"$or":[{"a":{"gt":1}},{"a":{"lt":2}}]}`, `((NUM > 1.) OR (KIND >= 6 AND NUM < 2.))`},
		{`{"a":{"exists":true}}`, `(KIND != 0)`},
		{`{"a":{"exists":false}}`, `(KIND = 0)`},
		{`{"a":{"contains":""}}`, `(KIND IN (5, 7) AND 1)`},
		{`{"a":{"contains":"Xy"}}`, `(position(lower(TEXT), 'xy') > 0)`},
		{`{"a":{"contains":"K."}}`, `(match(TEXT, '(?i:K\\.)'))`},
		{`{"a":{"contains":"Ä"}}`, `(match(TEXT, '(?i:Ä)'))`},
		{`{"a":{"startsWith":"x"}}`, `(position(lower(substring(TEXT, 1, 1)), 'x') > 0)`},
		{`{"a":{"startsWith":"s"}}`, `(match(TEXT, '(?i:\\AS)'))`},
		{`{"a":{"endsWith":"x"}}`, `(position(lower(right(TEXT, 1)), 'x') > 0)`},
		{`{"a":{"endsWith":"s"}}`, `(match(TEXT, '(?i:S\\z)'))`},
		{`{"a":{"regex":"^x.$"}}`, `(match(TEXT, '(?-ms:\\Ax.$)'))`},
		{`{"a":{"regex":"x*"}}`, `(KIND IN (5, 7) AND match(TEXT, 'x*'))`},
		{`{"$or":[{"a":{"gt":1}},{"a":{"exists":true}}],"$nor":[{"a":{"lt":0}}]}`,
			`(((NUM > 1.) OR (KIND != 0)) AND NOT ((NUM < 0.)))`},
	}
	for _, test := range tests {
		node, err := filter.Parse([]byte(test.filter))
		if err != nil {
			t.Fatalf("%s: %v", test.filter, err)
		}
		if diff := cmp.Diff(test.want, short.Replace(printFilter(node))); diff != "" {
			t.Errorf("%s: %s", test.filter, diff)
		}
	}
}

func TestSeveralFields(t *testing.T) {
	for text, want := range map[string]bool{
		`{}`: false, `{"a":1}`: false, `{"a":{"gte":1,"lt":2}}`: false,
		`{"a":{"between":[1,2]}}`: false, `{"$or":[{"a":1},{"b":1}]}`: false,
		`{"a":1,"b":1}`: true, `{"a":1,"$nor":[{"a":2}]}`: true, `{"$nor":[{"a":2}],"a":1}`: true,
	} {
		node, err := filter.Parse([]byte(text))
		if got := severalFields(node); got != want || err != nil {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
}

func TestPrintSort(t *testing.T) {
	want := `transform(KIND, [6, 7, 5, 2, 3, 4], [0, 0, 1, 2, 2, 3], 4), if(KIND >= 6, NUM, 0), if(KIND = 5, TEXT, ''), if(KIND = 3, 1, 0), `
	sorts := []rowstore.Sort{{Field: "a"}, {Field: "a", Descending: true}}
	down := strings.NewReplacer("NUM, 0)", "NUM, 0) DESC", "'')", "'') DESC", "1, 0)",
		"1, 0) DESC").Replace(want)
	if diff := cmp.Diff(want+down+"_block_number, pos",
		short.Replace(printSort(sorts))); diff != "" {
		t.Error(diff)
	}
}

func TestPrintScope(t *testing.T) {
	group, one, two := ids.ID{1}, ids.ID{11: 1}, ids.ID{11: 2}
	got := printScope(rowstore.Scope{Group: group, Scraper: one, Jobs: []ids.ID{one, two},
		Without: []ids.ID{two}})
	want := `grp = unhex('010000000000000000000000') AND scraper = unhex('000000000000000000000001')` +
		` AND job IN (unhex('000000000000000000000001'),unhex('000000000000000000000002'))` +
		` AND job NOT IN (unhex('000000000000000000000002'))`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	want = `grp = unhex('010000000000000000000000') AND job IN (SELECT arrayJoin(arrayMap(i -> ` +
		`toFixedString(substring(unhex(''), 12 * i + 1, 12), 12), range(0))))`
	if diff := cmp.Diff(want, printScope(rowstore.Scope{Group: group,
		Jobs: []ids.ID{}})); diff != "" {
		t.Error(diff)
	}
	many := make([]ids.ID, shortSet+1)
	if got := idSet(many); strings.Count(got, "unhex") != 1 || !strings.Contains(got, "range(65)") {
		t.Errorf("a long set: %s", got)
	}
}

func TestPlaces(t *testing.T) {
	got := places(5<<posBits|7, 9<<posBits|3)
	want := `_block_number >= 5 AND _block_number <= 9 AND (_block_number > 5 OR pos > 7) AND (_block_number < 9 OR pos <= 3)`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if got := places(5<<posBits|posMask,
		10<<posBits-1); got != `_block_number >= 5 AND _block_number <= 9 AND _block_number > 5` {
		t.Error(got)
	}
	if got := places(0, 2<<posBits-1); got != `_block_number >= 0 AND _block_number <= 1` {
		t.Error(got)
	}
	if got := places(5<<posBits|7,
		5<<posBits|9); got != `_block_number = 5 AND pos > 7 AND pos <= 9` {
		t.Error(got)
	}
}

func TestColumns(t *testing.T) {
	job, record, row := rowstoretest.Columns()
	columns := map[string]string{}
	for _, migration := range migrations {
		for _, statement := range migration {
			if name, rest, ok := strings.Cut(statement, " (\n"); ok {
				columns[name[strings.LastIndex(name, ".")+1:]] += "\n" + rest
			}
			if name, column, ok := strings.Cut(statement, " ADD COLUMN "); ok {
				columns[name[strings.LastIndex(name, ".")+1:]] += "\n\t" + column
			}
		}
	}
	stored := append(append([]string{"job"}, record...), row...)
	for table, wanted := range map[string][]string{"jobs": job, "rows": stored, "weeks": stored} {
		for _, column := range wanted {
			if !strings.Contains(columns[table], "\n\t"+column+" ") {
				t.Errorf("table %s has no column %s", table, column)
			}
		}
	}
	for _, column := range insertColumns() {
		if name, _, nested := strings.Cut(column.Name, "."); nested {
			column.Name = name
		}
		for _, table := range []string{"intake", "intakeweekly"} {
			if !strings.Contains(columns[table], column.Name+" ") {
				t.Errorf("table %s has no column %s", table, column.Name)
			}
		}
	}
}
