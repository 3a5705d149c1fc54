package curl

import (
	"bytes"
	"fmt"
	"net/url"
	"strings"

	"github.com/zeebo/xxh3"
)

// part is a text part of a multipart form.
type part struct{ name, media, value string }

func (c *reading) addData(option, value string) error {
	if strings.HasPrefix(value, "@") {
		return invalid("the option %s with @ is not allowed: %s; --data-raw takes the text as it is", option, files)
	}
	c.data = append(c.data, value)
	return nil
}

// addEncoded parses text, =text and name=text; forms with @ name files.
func (c *reading) addEncoded(value string) error {
	name, text, named := strings.Cut(value, "=")
	switch {
	case !named && strings.Contains(value, "@"), strings.Contains(name, "@"):
		return invalid("the option --data-urlencode with @ is not allowed: %s", files)
	case !named:
		name, text = "", value
	}
	text = strings.ReplaceAll(url.QueryEscape(text), "+", "%20")
	if name != "" {
		text = name + "=" + text
	}
	c.data = append(c.data, text)
	return nil
}

func (c *reading) addJSON(value string) error {
	if strings.HasPrefix(value, "@") {
		return invalid("the option --json with @ is not allowed: %s", files)
	}
	if c.json && len(c.data) > 0 {
		c.data[len(c.data)-1] += value
		return nil
	}
	c.json = true
	c.data = append(c.data, value)
	return nil
}

// addPart parses name=text, optionally followed by ;type=.
func (c *reading) addPart(value string) error {
	name, text, ok := strings.Cut(value, "=")
	switch {
	case !ok || name == "":
		return invalid("a part of a form (-F) is written as name=text")
	case strings.HasPrefix(text, "@"), strings.HasPrefix(text, "<"):
		return invalid("the option -F with @ or < is not allowed: %s", files)
	}
	var media string
	if rest, quoted := strings.CutPrefix(text, `"`); quoted {
		end := strings.LastIndexByte(rest, '"')
		if end < 0 {
			return invalid("a part of a form (-F) has a quote without its end")
		}
		text, media = unescaped(rest[:end], `\"`), rest[end+1:]
	} else {
		text, media, _ = strings.Cut(text, ";")
	}
	if media = strings.TrimPrefix(media, ";"); media != "" {
		kind, found := strings.CutPrefix(strings.TrimSpace(media), "type=")
		if !found || strings.Contains(kind, ";") {
			return invalid("a part of a form (-F) takes ;type= and nothing else; --form-string " +
				"takes the text as it is")
		}
		media = kind
	}
	return c.addFormPart(part{name, media, text})
}

func (c *reading) addText(value string) error {
	name, text, ok := strings.Cut(value, "=")
	if !ok || name == "" {
		return invalid("a part of a form (--form-string) is written as name=text")
	}
	return c.addFormPart(part{name: name, value: text})
}

func (c *reading) addFormPart(p part) error {
	if strings.ContainsAny(p.name+p.media, "\r\n") {
		return invalid("names and types of a form's parts (-F) are one line")
	}
	c.form = append(c.form, p)
	return nil
}

// multipart returns the form as a body. The boundary is derived from the parts, so that a command
// always makes the same request.
func multipart(form []part) (body []byte, boundary string) {
	h := xxh3.New()
	for _, p := range form {
		_, _ = fmt.Fprintf(h, "%d %d %d %s%s%s", len(p.name), len(p.media), len(p.value), p.name,
			p.media, p.value)
	}
	for {
		boundary = fmt.Sprintf("------------------------%016x", h.Sum64())
		var out bytes.Buffer
		clash := false
		for _, p := range form {
			clash = clash || strings.Contains(p.value, boundary)
			name := strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(p.name)
			fmt.Fprintf(&out, "--%s\r\nContent-Disposition: form-data; name=\"%s\"\r\n", boundary,
				name)
			if p.media != "" {
				fmt.Fprintf(&out, "Content-Type: %s\r\n", p.media)
			}
			fmt.Fprintf(&out, "\r\n%s\r\n", p.value)
		}
		fmt.Fprintf(&out, "--%s--\r\n", boundary)
		if !clash {
			return out.Bytes(), boundary
		}
		_, _ = h.WriteString(boundary)
	}
}
