// Package jsontext writes strings as JSON for rows and documents that are assembled without
// encoding/json. It also words the refusals of encoding/json.
package jsontext

import "unicode/utf8"

const hexDigits = "0123456789abcdef"

// AppendString appends s as a JSON string. Bytes that are not UTF-8 become U+FFFD. U+2028 and
// U+2029 are escaped, so that the result is also a JavaScript literal.
func AppendString(dst []byte, s string) []byte {
	// No copy: the compiler sees that the bytes are neither kept nor changed.
	return AppendBytes(dst, []byte(s))
}

// AppendBytes appends text like AppendString.
func AppendBytes(dst, s []byte) []byte {
	dst = append(dst, '"')
	done := 0
	for i := 0; i < len(s); {
		b := s[i]
		if b >= ' ' && b != '"' && b != '\\' && b < utf8.RuneSelf {
			i++
			continue
		}
		if b < utf8.RuneSelf {
			dst = appendEscape(append(dst, s[done:i]...), b)
			i++
			done = i
			continue
		}
		r, size := utf8.DecodeRune(s[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			dst = append(append(dst, s[done:i]...), "\ufffd"...)
			done = i + size
		case r == '\u2028' || r == '\u2029':
			dst = append(append(dst, s[done:i]...), `\u202`...)
			dst = append(dst, hexDigits[r&0xf])
			done = i + size
		}
		i += size
	}
	return append(append(dst, s[done:]...), '"')
}

// appendEscape appends an ASCII character that must be escaped in a JSON string.
func appendEscape(dst []byte, b byte) []byte {
	switch b {
	case '"', '\\':
		return append(dst, '\\', b)
	case '\b':
		return append(dst, `\b`...)
	case '\f':
		return append(dst, `\f`...)
	case '\n':
		return append(dst, `\n`...)
	case '\r':
		return append(dst, `\r`...)
	case '\t':
		return append(dst, `\t`...)
	}
	return append(dst, '\\', 'u', '0', '0', hexDigits[b>>4], hexDigits[b&0xf])
}
