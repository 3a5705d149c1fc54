package command

import (
	"reflect"
	"slices"
	"strconv"
)

// Newest is the newest version that this binary can apply.
const Newest uint32 = 2

// sinceOf returns the version that introduced a struct's member.
func sinceOf(field reflect.StructField) uint32 {
	tag, tagged := field.Tag.Lookup("since")
	if !tagged {
		return 1
	}
	version, err := strconv.ParseUint(tag, 10, 32)
	if err != nil || version < 2 {
		panic("command: " + field.Name + " has no version: " + tag) // a programmer's slip
	}
	return uint32(version)
}

// Grew reports whether a payload type, or a type in it, has members that version 1 lacks.
func Grew(t reflect.Type) bool { return grew(t, nil) }

func grew(t reflect.Type, within []reflect.Type) bool {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		return grew(t.Elem(), within)
	case reflect.Struct:
		if slices.Contains(within, t) {
			return false
		}
		within = append(slices.Clip(within), t)
		for i := range t.NumField() {
			if field := t.Field(i); field.IsExported() &&
				(sinceOf(field) > 1 || grew(field.Type, within)) {
				return true
			}
		}
	}
	return false
}

// Trim returns a copy of the payload without members that are newer than version.
func Trim(payload Payload, version uint32) Payload {
	trimmed := reflect.New(reflect.TypeOf(payload)).Elem()
	trimmed.Set(reflect.ValueOf(payload))
	trim(trimmed, version)
	return trimmed.Interface().(Payload)
}

// trim zeroes newer members of a settable value. It copies what the value refers to.
func trim(v reflect.Value, version uint32) {
	if !grew(v.Type(), nil) {
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			switch field := v.Type().Field(i); {
			case !field.IsExported():
			case sinceOf(field) > version:
				v.Field(i).SetZero()
			default:
				trim(v.Field(i), version)
			}
		}
	case reflect.Pointer:
		if !v.IsNil() {
			pointee := reflect.New(v.Type().Elem())
			pointee.Elem().Set(v.Elem())
			trim(pointee.Elem(), version)
			v.Set(pointee)
		}
	case reflect.Slice:
		if !v.IsNil() {
			items := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
			reflect.Copy(items, v)
			for i := range items.Len() {
				trim(items.Index(i), version)
			}
			v.Set(items)
		}
	default:
		// a programmer's slip
		panic("command: members of a version cannot stand in a " + v.Type().String())
	}
}
