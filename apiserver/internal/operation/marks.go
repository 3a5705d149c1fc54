package operation

import (
	"bytes"
	"encoding/json"
	"reflect"

	"shoal.dev/shoal/apiserver/internal/scraped"
)

// marks say which parts of an answer were scraped; nil: none.
type marks struct {
	row     bool              // the value is a scraped row
	origin  *string           // all texts were scraped; the sibling member of this name says where
	members map[string]*marks // of an object
	items   *marks            // of an array
}

// marksOf finds the scraped parts of an answer's type.
func marksOf(t reflect.Type) *marks {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case t.Implements(scrapedRowType):
		return &marks{row: true}
	case t.Kind() == reflect.Slice && t != rawType:
		if items := marksOf(t.Elem()); items != nil {
			return &marks{items: items}
		}
	case t.Kind() == reflect.Struct && !t.Implements(schematicType):
		return marksOfMembers(t)
	}
	return nil
}

func marksOfMembers(t reflect.Type) *marks {
	sh := &shape{byName: map[string]int{}}
	sh.collect(t, nil, "json")
	members := map[string]*marks{}
	for i := range sh.fields {
		f := &sh.fields[i]
		if f.rules.scraped != "" {
			members[f.name] = &marks{origin: &f.rules.scraped}
		} else if own := marksOf(f.typ); own != nil {
			members[f.name] = own
		}
	}
	if len(members) == 0 {
		return nil
	}
	return &marks{members: members}
}

// Mark returns an answer in which every scraped text is marked as data. origin is where rows were
// scraped that do not say it themselves.
func (t *Tool) Mark(answer json.RawMessage, origin string) (json.RawMessage, error) {
	if t.marks == nil {
		return answer, nil
	}
	var out bytes.Buffer
	err := t.marks.write(&out, answer, origin)
	return out.Bytes(), err
}

// write writes a value whose texts were scraped at origin, unless the value says otherwise.
func (m *marks) write(to *bytes.Buffer, value json.RawMessage, origin string) error {
	value = bytes.TrimSpace(value)
	switch {
	case m == nil || string(value) == "null":
		_, err := to.Write(value)
		return err
	case m.row:
		return scraped.WriteRow(to, value, origin)
	case m.origin != nil:
		return scraped.WriteValue(to, value, origin)
	case m.items != nil:
		return m.writeItems(to, value, origin)
	}
	return m.writeMembers(to, value, origin)
}

func (m *marks) writeItems(to *bytes.Buffer, value json.RawMessage, origin string) error {
	var items []json.RawMessage
	if err := json.Unmarshal(value, &items); err != nil {
		return err
	}
	separator := byte('[')
	for _, item := range items {
		to.WriteByte(separator)
		separator = ','
		if err := m.items.write(to, item, origin); err != nil {
			return err
		}
	}
	if len(items) == 0 {
		to.WriteByte('[')
	}
	to.WriteByte(']')
	return nil
}

// writeMembers writes an object's members in their order.
func (m *marks) writeMembers(to *bytes.Buffer, value json.RawMessage, origin string) error {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(value, &members); err != nil {
		return err
	}
	in := json.NewDecoder(bytes.NewReader(value))
	if _, err := in.Token(); err != nil { // {
		return err
	}
	separator := byte('{')
	for in.More() {
		token, err := in.Token()
		if err != nil {
			return err
		}
		name, _ := token.(string)
		var own json.RawMessage
		if err := in.Decode(&own); err != nil {
			return err
		}
		to.WriteByte(separator)
		separator = ','
		quoted, err := json.Marshal(name)
		if err != nil {
			return err
		}
		to.Write(append(quoted, ':'))
		inner, from := m.members[name], origin
		if inner != nil && inner.origin != nil {
			from = ""
			_ = json.Unmarshal(members[*inner.origin], &from) // stays "" if the member does not say
		}
		if err := inner.write(to, own, from); err != nil {
			return err
		}
	}
	if separator == '{' {
		to.WriteByte('{')
	}
	to.WriteByte('}')
	return nil
}
