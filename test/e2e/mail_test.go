//go:build unix

package e2e

import (
	"errors"
	"io"
	"mime"
	"mime/quotedprintable"
	"net"
	"net/mail"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"
)

// mailbox is a real SMTP server that stores the mails it receives.
type mailbox struct {
	port string
	mu   sync.Mutex
	got  []letter
}

// letter is one mail: its recipient, subject, and decoded text.
type letter struct{ to, subject, text string }

func startMail(t *testing.T) *mailbox {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	m := &mailbox{}
	_, m.port, _ = net.SplitHostPort(listener.Addr().String())
	server := smtp.NewServer(smtp.BackendFunc(func(*smtp.Conn) (smtp.Session, error) { return &delivery{box: m}, nil }))
	server.Domain, server.AllowInsecureAuth = "localhost", true
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(listener)
	}()
	t.Cleanup(func() {
		// Shutdown closes the listener only after Serve has begun, and a skipped test does not wait for that.
		listener.Close()
		server.Close()
		<-done
	})
	return m
}

// delivery is one SMTP connection.
type delivery struct {
	box *mailbox
	to  string
}

func (d *delivery) AuthMechanisms() []string { return []string{sasl.Plain, sasl.Login} }

func (d *delivery) Auth(string) (sasl.Server, error) {
	return sasl.NewPlainServer(func(_, _, password string) error {
		if password == "" {
			return errors.New("no password")
		}
		return nil
	}), nil
}

func (d *delivery) Mail(string, *smtp.MailOptions) error { return nil }

func (d *delivery) Rcpt(to string, _ *smtp.RcptOptions) error {
	d.to = to
	return nil
}

func (d *delivery) Data(r io.Reader) error {
	message, err := mail.ReadMessage(r)
	if err != nil {
		return err
	}
	body, err := io.ReadAll(message.Body)
	if err != nil {
		return err
	}
	// Every part of the backend's mails is quoted-printable or plain text; decoding does not change boundary lines.
	text, err := io.ReadAll(quotedprintable.NewReader(strings.NewReader(string(body))))
	if err != nil {
		text = body
	}
	subject, _ := new(mime.WordDecoder).DecodeHeader(message.Header.Get("Subject"))
	d.box.mu.Lock()
	defer d.box.mu.Unlock()
	d.box.got = append(d.box.got, letter{to: d.to, subject: subject, text: string(text)})
	return nil
}

func (d *delivery) Reset()        {}
func (d *delivery) Logout() error { return nil }

var mailedToken = regexp.MustCompile(`(/[a-z]+)\?token=(sml_[A-Za-z0-9_-]+)`)

// token waits for a mail with a link to the path, removes the mail, and returns the token in the link.
func (m *mailbox) token(t *testing.T, path string) string {
	t.Helper()
	var token string
	must(t, "a mail with a link to "+path, func() bool {
		m.mu.Lock()
		defer m.mu.Unlock()
		for i, l := range m.got {
			if found := mailedToken.FindStringSubmatch(l.text); found != nil && found[1] == path {
				token = found[2]
				m.got = append(m.got[:i], m.got[i+1:]...)
				return true
			}
		}
		return false
	})
	return token
}
