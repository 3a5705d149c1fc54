package curl

import (
	"bytes"
	"encoding/json"
	"net/url"
	"strconv"
	"strings"
)

// BodyParam returns the value of a parameter in the body. In a form
// (application/x-www-form-urlencoded) it is the first field with that name. In JSON it is the
// member that a pointer (RFC 6901) names, or, without a leading slash, the top-level member with
// that name. It is false if the body does not have it.
func (r *Request) BodyParam(param string) (value string, found bool) {
	if len(r.Body) == 0 || param == "" {
		return "", false
	}
	if r.isForm() {
		for pair := range strings.SplitSeq(string(r.Body), "&") {
			name, text, _ := strings.Cut(pair, "=")
			if decoded, err := url.QueryUnescape(name); err == nil && decoded == param {
				value, err = url.QueryUnescape(text)
				return value, err == nil
			}
		}
		return "", false
	}
	from, to, found := locate(r.Body, pointer(param))
	if !found {
		return "", false
	}
	raw := r.Body[from:to]
	if json.Unmarshal(raw, &value) != nil {
		value = string(raw)
	}
	return value, true
}

// WithBodyParam returns the request with another value for a parameter that BodyParam finds. All
// else stays byte for byte. In JSON the value is a number if it replaces a number and is one, and
// text otherwise.
func (r *Request) WithBodyParam(param, value string) *Request {
	changed := *r
	if r.isForm() {
		pairs := strings.Split(string(r.Body), "&")
		for i, pair := range pairs {
			name, _, _ := strings.Cut(pair, "=")
			if decoded, err := url.QueryUnescape(name); err == nil && decoded == param {
				pairs[i] = name + "=" + url.QueryEscape(value)
				break
			}
		}
		changed.Body = []byte(strings.Join(pairs, "&"))
		return &changed
	}
	from, to, found := locate(r.Body, pointer(param))
	if !found {
		return r
	}
	var text bytes.Buffer
	if isNumber(string(r.Body[from:to])) && isNumber(value) {
		text.WriteString(value)
	} else {
		encoder := json.NewEncoder(&text)
		encoder.SetEscapeHTML(false)
		if encoder.Encode(value) != nil {
			return r
		}
		text.Truncate(text.Len() - 1) // the line end that the encoder adds
	}
	changed.Body = bytes.Join([][]byte{r.Body[:from], text.Bytes(), r.Body[to:]}, nil)
	return &changed
}

func (r *Request) isForm() bool {
	media, _ := r.field("content-type")
	media, _, _ = strings.Cut(media, ";")
	return strings.EqualFold(strings.TrimSpace(media), "application/x-www-form-urlencoded")
}

// isNumber reports whether text is a JSON number.
func isNumber(text string) bool {
	return text != "" && (text[0] == '-' || text[0] >= '0' && text[0] <= '9') &&
		json.Valid([]byte(text))
}

// pointer returns the JSON path that a parameter's name means.
func pointer(param string) []string {
	if !strings.HasPrefix(param, "/") {
		return []string{param}
	}
	path := strings.Split(param[1:], "/")
	for i := range path {
		path[i] = strings.NewReplacer("~1", "/", "~0", "~").Replace(path[i])
	}
	return path
}

// locate finds the first value with a path in JSON.
func locate(body []byte, path []string) (from, to int, found bool) {
	tokens := json.NewDecoder(bytes.NewReader(body))
	open, err := tokens.Token()
	if err != nil || open != json.Delim('{') && open != json.Delim('[') {
		return 0, 0, false
	}
	for i := 0; tokens.More(); i++ {
		name := strconv.Itoa(i)
		if open == json.Delim('{') {
			key, err := tokens.Token()
			text, isText := key.(string)
			if err != nil || !isText {
				return 0, 0, false
			}
			name = text
		}
		var value json.RawMessage
		if tokens.Decode(&value) != nil {
			return 0, 0, false
		}
		if name != path[0] {
			continue
		}
		to = int(tokens.InputOffset())
		from = to - len(value)
		if len(path) == 1 {
			return from, to, true
		}
		inFrom, inTo, found := locate(value, path[1:])
		return from + inFrom, from + inTo, found
	}
	return 0, 0, false
}
