package account

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/mail"
	"github.com/service-dev/service/backend/internal/secret"
	"github.com/service-dev/service/internal/credential"
)

// blockingStore blocks reads of accounts until they are released. Other calls are not blocked.
type blockingStore struct {
	Store
	held bool
}

func (s *blockingStore) AccountByID(ctx context.Context, id string) (Account, error) {
	if s.held {
		<-ctx.Done()
		return Account{}, ctx.Err()
	}
	return Account{ID: id, Email: "ada@example.org", Active: true}, nil
}

func (s *blockingStore) SetActive(context.Context, bool, audit.Entry, audit.Trace) (bool, error) {
	return true, nil
}

func (s *blockingStore) EndWebSessions(context.Context, string, string, audit.Entry) (int, error) {
	return 1, nil
}

func (s *blockingStore) DeleteWebSession(context.Context, string, audit.Entry) (string, error) {
	return "ada", nil
}

func (s *blockingStore) MailToken(context.Context, string, time.Time) (MailToken, error) {
	return MailToken{AccountID: "ada", Purpose: purposeReset}, nil
}

func (s *blockingStore) ResetPassword(context.Context, MailToken, string, Access, time.Time, audit.Entry, audit.Trace) error {
	return nil
}

func (s *blockingStore) SetPassword(context.Context, string, string, string, audit.Entry) error {
	return nil
}

func (s *blockingStore) SweepGuesses(context.Context, time.Time) error { return nil }

func (s *blockingStore) DeleteAccount(context.Context, string, time.Time) error { return nil }

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
		store, out := &blockingStore{held: true}, &letters{}
		s := NewService(store, secret.NewHasher(make([]byte, 32)), slog.New(slog.DiscardHandler), nil)
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
		store.held = false
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
	s := NewService(&blockingStore{}, secret.NewHasher(make([]byte, 32)), slog.New(slog.DiscardHandler), nil)
	ends := 0
	s.Ended = func(accountID string) {
		if ends++; accountID != "ada" {
			t.Errorf("Ended was called for %q, want ada", accountID)
		}
	}
	for name, end := range map[string]func() error{
		"suspended":     func() error { _, err := s.Suspend(t.Context(), "ada", audit.Operator()); return err },
		"signed out":    func() error { return s.CloseSession(t.Context(), secret.New(credential.Browser)) },
		"one browser":   func() error { return s.EndSession(t.Context(), "ada", "one", audit.Person()) },
		"every browser": func() error { _, err := s.EndOtherSessions(t.Context(), "ada", "", audit.Person()); return err },
		"password reset": func() error {
			_, err := s.ResetPassword(t.Context(), secret.New(credential.Mail), "another password", Access{})
			return err
		},
		"password set": func() error { return s.SetPassword(t.Context(), "ada", "another password", "", audit.Person()) },
		"deleted":      func() error { return s.Delete(t.Context(), "ada", audit.Person()) },
	} {
		ends = 0
		if err := end(); err != nil || ends != 1 {
			t.Errorf("%s: error %v, Ended called %d times, want 1", name, err, ends)
		}
	}
}
