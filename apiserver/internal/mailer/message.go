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
	Text  string // of a single notice
	Items []item // of several notices
	More  uint64 // notices that are not in Items
	Link  string // "": none
	Why   string // why it is sent
}

type item struct{ At, Title, Text string }

func newContent(m *client.Mail) content {
	first := &m.Notices[0]
	why := fmt.Sprintf("You get this because your notification preferences say so for %s.", m.Event)
	if m.Count == 1 {
		return content{Title: notices.Title(first), Text: notices.Text(first), Why: why}
	}
	c := content{Title: fmt.Sprintf("%s, and %d more", notices.Title(first), m.Count-1),
		More: m.Count - uint64(len(m.Notices)), Why: why}
	for i := range m.Notices {
		n := &m.Notices[i]
		c.Items = append(c.Items, item{time.UnixMilli(n.At).UTC().Format("2006-01-02 15:04 UTC"),
			notices.Title(n), notices.Text(n)})
	}
	return c
}

// newLetter says what a letter's link is for.
func newLetter(l *client.Letter, link string) content {
	until := time.UnixMilli(l.Expires).UTC().Format("2006-01-02 15:04 UTC")
	stays := "If it was not you, do nothing: the password stays as it is."
	switch {
	case l.Account.IsZero():
		return content{Title: "Finish signing up", Link: link,
			Text: "Somebody, most likely you, wants an account with this e-mail address. The link " +
				"makes it, once, until " + until + ".",
			Why: "If it was not you, do nothing: no account is made."}
	case l.SignUp:
		return content{Title: "You have an account already", Link: link,
			Text: "Somebody, most likely you, wanted to sign up with this e-mail address, which has " +
				"an account. Sign in with its password. If it is forgotten, the link sets a new " +
				"one, once, until " + until + ".",
			Why: stays}
	}
	return content{Title: "Set a new password", Link: link,
		Text: "Somebody, most likely you, has forgotten the password of the account with this " +
			"e-mail address. The link sets a new one, once, until " + until +
			". All devices are signed out then.",
		Why: stays}
}

// message is an e-mail as it is sent. Repeats are identical except for the MIME boundaries.
func (s *Server) message(m *outgoing) (*mail.Msg, error) {
	message := mail.NewMsg()
	if err := message.From(s.From); err != nil {
		return nil, fmt.Errorf("the sender's address: %w", err)
	}
	if err := message.To(m.to); err != nil {
		return nil, fmt.Errorf("the address of customer %s: %w", m.customer, err)
	}
	sender := message.GetFrom()[0].Address
	message.SetMessageIDWithValue(m.id.String() + sender[strings.LastIndex(sender, "@"):])
	message.SetDateWithValue(m.at.UTC())
	message.SetGenHeader("Auto-Submitted", "auto-generated")
	message.Subject(m.content.Title)
	var page bytes.Buffer
	if err := mailTemplate.Execute(&page, m.content); err != nil {
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

// plain is a page as text: its blocks, with empty lines between them.
func plain(page string) (string, error) {
	root, err := html.Parse(strings.NewReader(page))
	if err != nil {
		return "", err
	}
	var blocks []string
	for node := range root.Descendants() {
		if node.Type != html.TextNode || strings.TrimSpace(node.Data) == "" {
			continue
		}
		var text []string
		for line := range strings.Lines(strings.TrimSpace(node.Data)) {
			text = append(text, strings.Join(strings.Fields(line), " "))
		}
		block := strings.Join(text, "\n")
		if node.Parent.Data == "li" {
			block = "- " + strings.ReplaceAll(block, "\n", "\n  ")
		}
		blocks = append(blocks, block)
	}
	return strings.Join(blocks, "\n\n") + "\n", nil
}
