package structured

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"testing"
)

func flat(it *Item) map[string]any {
	m := map[string]any{"type": fmt.Sprint(it.Types)}
	props := map[string]any{}
	for _, p := range it.Props {
		var vs []string
		for _, v := range p.Values {
			if v.Kind == Entity {
				b, _ := json.Marshal(flat(v.Item))
				vs = append(vs, string(b))
			} else {
				vs = append(vs, strings.Join(strings.Fields(v.Text), ""))
			}
		}
		sort.Strings(vs)
		props[p.Name] = vs
	}
	m["props"] = props
	return m
}
func theirs(j map[string]any) map[string]any {
	var types []string
	switch t := j["type"].(type) {
	case string:
		types = []string{local(t)}
	case []any:
		for _, x := range t {
			types = append(types, local(fmt.Sprint(x)))
		}
	}
	m := map[string]any{"type": fmt.Sprint(types)}
	props := map[string]any{}
	ps, _ := j["properties"].(map[string]any)
	for k, v := range ps {
		l, ok := v.([]any)
		if !ok {
			l = []any{v}
		}
		var vs []string
		for _, e := range l {
			if o, ok := e.(map[string]any); ok {
				b, _ := json.Marshal(theirs(o))
				vs = append(vs, string(b))
			} else {
				vs = append(vs, strings.Join(strings.Fields(fmt.Sprint(e)), ""))
			}
		}
		sort.Strings(vs)
		props[local(k)] = vs
	}
	m["props"] = props
	return m
}
func TestExtruct(t *testing.T) {
	files, _ := filepath.Glob("/tmp/extruct/tests/samples/*/*.html")
	for _, f := range files {
		body, _ := os.ReadFile(f)
		d, err := Read(body, "http://www.example.com/index.html")
		if err != nil {
			t.Error(f, err)
			continue
		}
		base := strings.TrimSuffix(f, ".html")
		fmt.Printf("== %s items %d meta %d pairs %d fw %d\n", strings.TrimPrefix(base, "/tmp/extruct/tests/samples/"), len(d.Items), len(d.Meta), len(d.Pairs), len(d.Framework))
		if text, err := os.ReadFile(base + ".json"); err == nil && !strings.Contains(f, "rdfa") {
			var list []map[string]any
			var wrapped map[string][]map[string]any
			if json.Unmarshal(text, &list) != nil {
				if json.Unmarshal(text, &wrapped) != nil {
					continue
				}
				list = wrapped["microdata"]
			}
			var mine, want []string
			for _, it := range d.Items {
				if it.Source == Microdata {
					b, _ := json.Marshal(flat(it))
					mine = append(mine, string(b))
				}
			}
			for _, o := range list {
				if o["properties"] == nil { continue }
				b, _ := json.Marshal(theirs(o))
				want = append(want, string(b))
			}
			if strings.Join(mine, "\n") != strings.Join(want, "\n") {
				fmt.Printf("DIFF microdata\n mine %s\n want %s\n", strings.Join(mine, "\n      "), strings.Join(want, "\n      "))
			}
		}
		if text, err := os.ReadFile(base + ".jsonld"); err == nil {
			var list []any
			json.Unmarshal(text, &list)
			n := 0
			for _, it := range d.Items {
				if it.Source == JSONLD {
					n++
				}
			}
			fmt.Println("  jsonld mine", n, "theirs", len(list))
		}
		if strings.Contains(f, "rdfa") {
			for _, it := range d.Items {
				fmt.Println("  ", it.Source, outline(it))
			}
		}
	}
}
