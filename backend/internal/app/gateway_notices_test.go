package app

import (
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/emersion/go-smtp"

	"github.com/service-dev/service/backend/internal/config"
)

// mailbox is a mail server that keeps every mail it receives.
type mailbox struct{ mails chan string }

func (m *mailbox) NewSession(*smtp.Conn) (smtp.Session, error) { return m, nil }
func (*mailbox) Mail(string, *smtp.MailOptions) error          { return nil }
func (*mailbox) Rcpt(string, *smtp.RcptOptions) error          { return nil }
func (*mailbox) Reset()                                        {}
func (*mailbox) Logout() error                                 { return nil }
func (m *mailbox) Data(r io.Reader) error {
	text, err := io.ReadAll(r)
	m.mails <- string(text)
	return err
}

// startMailbox starts a mail server and returns the settings for using it.
func startMailbox(t *testing.T) (*mailbox, config.Mail) {
	t.Helper()
	m := &mailbox{make(chan string, 10)}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := smtp.NewServer(m)
	server.Domain = "localhost"
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(l)
	}()
	t.Cleanup(func() {
		_ = server.Close()
		<-done
	})
	return m, config.Mail{Host: "127.0.0.1", Port: l.Addr().(*net.TCPAddr).Port, From: "service@example.org", TLS: "none"}
}

// The owner gets one mail when most of a cap is spent, even if the server stops immediately afterwards.
func TestGateway_MailsThatMostOfACapIsSpent(t *testing.T) {
	box, settings := startMailbox(t)
	w := startGateway(t, func(c *config.Config) { c.Mail = settings })
	<-box.mails // the mail about the agent's link
	w.exec("UPDATE accounts SET verified_at = 1")
	call := func() callRow {
		if res, text := w.ask("POST", "/v1/chat/completions", chatBody("good", "")); res.StatusCode != http.StatusOK {
			t.Fatalf("got %d %s, want 200", res.StatusCode, text)
		}
		return w.last()
	}
	call()
	w.restart()
	// Spend more than 80 % of the cap, but leave enough for two more calls.
	w.exec("UPDATE gateway_settings SET day_cap = 100000")
	w.exec("UPDATE credit_spending SET spent = 85000 WHERE project <> ''")
	call()
	w.restart()
	call()
	w.restart()
	mail := <-box.mails
	for _, part := range []string{"To: <ada@example.org>", "Most of your AI credit or of a cap is spent", "com.example.hello",
		"/projects/com.example.hello/gateway"} {
		if !strings.Contains(mail, part) {
			t.Errorf("the mail lacks %q:\n%s", part, mail)
		}
	}
	if len(box.mails) != 0 {
		t.Errorf("got a second mail, want only one: %s", <-box.mails)
	}
}
