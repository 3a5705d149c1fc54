// Package codectest owns sample values for tests of encodings. Every field is set, so that a test
// notices a field which an encoding forgets.
package codectest

import (
	"fmt"
	"reflect"
)

// Fill sets everything behind a pointer, each part to a different value. Slices get two elements,
// maps one. Equal types get equal values.
func Fill(pointer any) {
	n := 0
	fill(reflect.ValueOf(pointer).Elem(), &n)
}

func fill(v reflect.Value, n *int) {
	*n++
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(int64(*n%100 + 1))
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(uint64(*n%100 + 1))
	case reflect.Float32, reflect.Float64:
		v.SetFloat(float64(*n) + 0.5)
	case reflect.String:
		v.SetString(fmt.Sprintf("s%d", *n))
	case reflect.Interface:
		v.Set(reflect.ValueOf(fmt.Sprintf("s%d", *n)))
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), n)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fillElements(v, n)
	case reflect.Array:
		fillElements(v, n)
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(key, n)
		fill(value, n)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i), n)
		}
	default:
		panic(fmt.Sprintf("codectest: no sample of a %s", v.Type()))
	}
}

func fillElements(v reflect.Value, n *int) {
	for i := range v.Len() {
		fill(v.Index(i), n)
	}
}
