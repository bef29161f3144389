package account

import (
	"context"
	"database/sql"
	"errors"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/db"
	"github.com/service-dev/service/backend/internal/dbtest"
	"github.com/service-dev/service/backend/internal/mail"
)

// blockReads makes reads of a database wait until the returned function is called.
func blockReads(t *testing.T, d *db.DB) (release func()) {
	t.Helper()
	var open []*sql.Rows
	for range max(4, runtime.NumCPU()) { // all connections that read
		//nolint:rowserrcheck,sqlclosecheck // release does both
		rows, err := d.QueryContext(t.Context(), "SELECT id FROM accounts")
		if err != nil {
			t.Fatal(err)
		}
		open = append(open, rows)
	}
	return func() {
		for _, rows := range open {
			if err := errors.Join(rows.Err(), rows.Close()); err != nil {
				t.Error(err)
			}
		}
	}
}

type letters struct{ sent []mail.Message }

func (l *letters) Enabled() bool { return true }
func (l *letters) Queue(m mail.Message) error {
	l.sent = append(l.sent, m)
	return nil
}

// A mailed notice never delays the client that waits for the token of a new link, even if the database hangs. A notice
// is dropped after its timeout, later notices are sent, and Serve sends the remaining ones before it returns.
func TestLinkMade_NeverBlocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, out := newService(t), &letters{}
		dbtest.AddAccount(t, s.store.DB, "ada")
		release := blockReads(t, s.store.DB)
		s.Mail = out
		for range 2 * maxQueued {
			s.LinkMade("ada", NewLink{Host: "one"}) // more than the queue can hold while Serve is not running
		}
		for len(s.linked) > 1 {
			<-s.linked
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- s.Serve(ctx) }()
		time.Sleep(2 * drainTimeout) // virtual time in the bubble; the notice is dropped
		synctest.Wait()
		release()
		s.LinkMade("ada", NewLink{Host: "two"})
		synctest.Wait()
		if len(out.sent) != 1 || out.sent[0].AccountID != "ada" {
			t.Errorf("sent %+v, want one mail to ada", out.sent)
		}
		s.LinkMade("ada", NewLink{Host: "three"})
		cancel()
		if err := <-done; err != nil || len(out.sent) != 2 {
			t.Errorf("Serve returned %v and sent %+v, want no error and two mails", err, out.sent)
		}
	})
}

// The name that a computer reports is quoted, and mail programs do not turn it into a link.
func TestNewLinkMail_ContainsNoForeignLink(t *testing.T) {
	l := NewLink{Host: "https://evil.example/login", OS: "www.evil.example",
		Client: "agent 1.2.3” . Sign in at “//EVIL。example mailto:a@evil.example", Address: "192.0.2.7"}
	m := newLinkMail(Account{ID: "ada", Email: "ada@example.org"}, l, "https://service.example/account")
	text := strings.Join(append(m.Text, m.After...), "\n")
	for _, link := range []string{"://", "www.", "evil.", "//EVIL。", "1.2.3”"} {
		if strings.Contains(text, link) {
			t.Errorf("the mail contains %q: %s", link, text)
		}
	}
	for _, says := range []string{"Computer: “https[:]//evil[.]example/login”\n", "System: “www[.]evil[.]example”\n",
		"“agent 1.2.3' ", "192.0.2.7"} {
		if !strings.Contains(text, says) {
			t.Errorf("the mail lacks %q: %s", says, text)
		}
	}
	if said := strings.Join(newLinkMail(Account{}, NewLink{}, "").Text, "\n"); !strings.Contains(said,
		"Computer: not reported\n") {
		t.Errorf("mail for a link without details: got %q, want the line Computer: not reported", said)
	}
}

// When access to an account ends, everything opened with that access ends immediately.
func TestEnded_Called(t *testing.T) {
	for name, end := range map[string]func(s *Service, cookie string) error{
		"suspended": func(s *Service, _ string) error {
			_, err := s.Suspend(t.Context(), "ada", audit.Operator())
			return err
		},
		"signed out": func(s *Service, cookie string) error { return s.CloseSession(t.Context(), cookie) },
		"one browser": func(s *Service, _ string) error {
			all, err := s.Sessions(t.Context(), "ada", "")
			if err != nil {
				return err
			}
			return s.EndSession(t.Context(), "ada", all[0].ID, audit.Person())
		},
		"every browser": func(s *Service, _ string) error {
			_, err := s.EndOtherSessions(t.Context(), "ada", "", audit.Person())
			return err
		},
		"password reset": func(s *Service, _ string) error {
			token, err := s.mailToken(t.Context(), "ada", purposeReset, "ada@example.org", ResetLife, 0)
			if err != nil {
				return err
			}
			_, err = s.ResetPassword(t.Context(), token[strings.LastIndexByte(token, '=')+1:], "another password", Access{})
			return err
		},
		"password set": func(s *Service, _ string) error {
			return s.SetPassword(t.Context(), "ada", "another password", "", audit.Person())
		},
		"deleted": func(s *Service, _ string) error { return s.Delete(t.Context(), "ada", audit.Person()) },
	} {
		s := newService(t)
		dbtest.AddAccount(t, s.store.DB, "ada")
		cookie, err := s.OpenSession(t.Context(), "ada", Visit{Method: ByPassword})
		if err != nil {
			t.Fatal(err)
		}
		ends := 0
		s.Ended = func(accountID string) {
			if ends++; accountID != "ada" {
				t.Errorf("Ended was called for %q, want ada", accountID)
			}
		}
		if err := end(s, cookie); err != nil || ends != 1 {
			t.Errorf("%s: error %v, Ended called %d times, want 1", name, err, ends)
		}
	}
}
