package mailer

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"strings"
	"time"

	"github.com/wneessen/go-mail"
	"golang.org/x/net/html"

	"shoal.dev/shoal/apiserver/internal/notices"
	"shoal.dev/shoal/controlplane/client"
)

//go:embed mail.html
var mailHTML string

var mailTemplate = template.Must(template.New("mail").Parse(mailHTML))

// content is what the template shows.
type content struct {
	Title string
	Text  string // of a notice that is alone
	Items []item // of several
	More  uint64 // beside them
	Event string
}

type item struct{ At, Title, Text string }

func newContent(m *client.Mail) content {
	first := &m.Notices[0]
	if m.Count == 1 {
		return content{Title: notices.Title(first), Text: notices.Text(first),
			Event: string(m.Event)}
	}
	c := content{Title: fmt.Sprintf("%s, and %d more", notices.Title(first), m.Count-1),
		More: m.Count - uint64(len(m.Notices)), Event: string(m.Event)}
	for i := range m.Notices {
		n := &m.Notices[i]
		c.Items = append(c.Items, item{time.UnixMilli(n.At).UTC().Format("2006-01-02 15:04 UTC"),
			notices.Title(n), notices.Text(n)})
	}
	return c
}

// message is an e-mail as it is sent. Repeats of it are equal, but for the marks between its parts.
func (s *Server) message(m *client.Mail, to string) (*mail.Msg, error) {
	message := mail.NewMsg()
	if err := message.From(s.From); err != nil {
		return nil, fmt.Errorf("the sender's address: %w", err)
	}
	if err := message.To(to); err != nil {
		return nil, fmt.Errorf("the address of customer %s: %w", m.Customer, err)
	}
	sender := message.GetFrom()[0].Address
	message.SetMessageIDWithValue(m.ID.String() + sender[strings.LastIndex(sender, "@"):])
	message.SetDateWithValue(time.UnixMilli(m.Notices[len(m.Notices)-1].At).UTC())
	message.SetGenHeader("Auto-Submitted", "auto-generated")
	c := newContent(m)
	message.Subject(c.Title)
	var page bytes.Buffer
	if err := mailTemplate.Execute(&page, c); err != nil {
		return nil, err
	}
	text, err := plain(page.String())
	if err != nil {
		return nil, err
	}
	message.SetBodyString(mail.TypeTextPlain, text)
	message.AddAlternativeString(mail.TypeTextHTML, page.String())
	return message, nil
}

// plain is the text of a page: a line for each of its blocks.
func plain(page string) (string, error) {
	root, err := html.Parse(strings.NewReader(page))
	if err != nil {
		return "", err
	}
	var lines []string
	for node := range root.Descendants() {
		if node.Type != html.TextNode || strings.TrimSpace(node.Data) == "" {
			continue
		}
		line := strings.Join(strings.Fields(node.Data), " ")
		if node.Parent.Data == "li" {
			line = "- " + line
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n\n") + "\n", nil
}
