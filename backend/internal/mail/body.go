package mail

import (
	"fmt"
	"html/template"
	"strings"

	gomail "github.com/wneessen/go-mail"
)

// page is the HTML version of a message. It has no images or external resources.
var page = template.Must(template.New("mail").Parse(`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{{.Subject}}</title></head>
<body style="font-family:sans-serif;line-height:1.5;max-width:34em">
{{range .Text}}<p>{{.}}</p>
{{end}}{{if .Link}}<p><a href="{{.Link}}">{{.LinkText}}</a></p>
<p>Or copy this address into your browser:<br>{{.Link}}</p>
{{end}}{{range .After}}<p>{{.}}</p>
{{end}}</body></html>
`))

func (s *Sender) compose(m Message) (*gomail.Msg, error) {
	msg := gomail.NewMsg()
	if err := msg.From(s.o.Mail.From); err != nil {
		return nil, fmt.Errorf("%w: sender", errMessage)
	}
	if err := msg.To(m.To); err != nil {
		return nil, fmt.Errorf("%w: recipient", errMessage)
	}
	msg.Subject(m.Subject)
	msg.SetDate()
	msg.SetMessageID()
	msg.SetGenHeader("Auto-Submitted", "auto-generated") // RFC 3834: prevents automatic replies
	msg.SetBodyString(gomail.TypeTextPlain, m.plain())
	var html strings.Builder
	if err := page.Execute(&html, m); err != nil {
		return nil, fmt.Errorf("%w: page", errMessage)
	}
	msg.AddAlternativeString(gomail.TypeTextHTML, html.String())
	return msg, nil
}

func (m Message) plain() string {
	parts := append([]string{}, m.Text...)
	if m.Link != "" {
		parts = append(parts, m.Link)
	}
	return strings.Join(append(parts, m.After...), "\n\n") + "\n"
}
