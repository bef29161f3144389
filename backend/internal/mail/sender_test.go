package mail

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log/slog"
	"math/big"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"

	"github.com/service-dev/service/backend/internal/config"
)

// server is a real SMTP server with configurable failures.
type server struct {
	mu      sync.Mutex
	refuse  []error // errors returned for the next messages
	user    string  // the user who signed in
	arrived chan string
	secured bool
}

func (s *server) NewSession(c *smtp.Conn) (smtp.Session, error) {
	_, secured := c.TLSConnectionState()
	s.mu.Lock()
	s.secured = secured
	s.mu.Unlock()
	return &conversation{s}, nil
}

type conversation struct{ s *server }

func (c *conversation) AuthMechanisms() []string { return []string{sasl.Plain} }

func (c *conversation) Auth(string) (sasl.Server, error) {
	return sasl.NewPlainServer(func(_, user, password string) error {
		if password != "canary-password" {
			return smtp.ErrAuthFailed
		}
		c.s.mu.Lock()
		defer c.s.mu.Unlock()
		c.s.user = user
		return nil
	}), nil
}

func (c *conversation) Mail(string, *smtp.MailOptions) error { return nil }
func (c *conversation) Rcpt(string, *smtp.RcptOptions) error { return nil }
func (c *conversation) Reset()                               {}
func (c *conversation) Logout() error                        { return nil }

func (c *conversation) Data(r io.Reader) error {
	body, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	if len(c.s.refuse) > 0 {
		err, c.s.refuse = c.s.refuse[0], c.s.refuse[1:]
		if err != nil {
			return err
		}
	}
	c.s.arrived <- string(body)
	return nil
}

func (s *server) start(t *testing.T, certificate *tls.Config) config.Mail {
	t.Helper()
	s.arrived = make(chan string, 10)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	srv := smtp.NewServer(s)
	srv.Domain, srv.AllowInsecureAuth, srv.TLSConfig = "localhost", certificate == nil, certificate
	done := make(chan struct{})
	go func() { defer close(done); _ = srv.Serve(l) }()
	t.Cleanup(func() { srv.Close(); <-done })
	return config.Mail{Host: "127.0.0.1", Port: l.Addr().(*net.TCPAddr).Port, From: "Service <service@example.org>",
		TLS: "none"}
}

type book struct {
	mu   sync.Mutex
	text bytes.Buffer
	line chan struct{}
}

func (b *book) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	select {
	case b.line <- struct{}{}:
	default:
	}
	return b.text.Write(p)
}

func (b *book) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// waitFor waits until the log contains the words.
func (b *book) waitFor(t *testing.T, words string) {
	t.Helper()
	late := time.After(30 * time.Second)
	for !strings.Contains(b.String(), words) {
		select {
		case <-b.line:
		case <-late:
			t.Fatalf("%q never appeared in the log: %s", words, b)
		}
	}
}

func run(t *testing.T, o Options) (*Sender, *book) {
	t.Helper()
	log := &book{line: make(chan struct{}, 1)}
	o.Log = slog.New(slog.NewTextHandler(log, nil))
	o.Wait = func(int) time.Duration { return time.Millisecond }
	s, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		for _, secret := range []string{"ada@example.org", "sml_canary", "canary-password"} {
			if strings.Contains(log.String(), secret) {
				t.Errorf("the log contains the secret %q: %s", secret, log)
			}
		}
	})
	return s, log
}

var letter = Message{AccountID: "account-1", To: "ada@example.org", Subject: "Set a new password",
	Text: []string{"Dear <Ada>,", "here it is:"}, LinkText: "Set it",
	Link: "https://service.example/reset?token=sml_canary", After: []string{"It works once."}}

func (s *server) letter(t *testing.T) string {
	t.Helper()
	select {
	case body := <-s.arrived:
		return body
	case <-time.After(30 * time.Second):
		t.Fatal("no mail arrived")
		return ""
	}
}

func TestSender_PlainServerOnThisMachine(t *testing.T) {
	server := &server{}
	m := server.start(t, nil)
	m.User, m.Password = "service", "canary-password"
	s, _ := run(t, Options{Mail: m})
	if err := s.Queue(letter); err != nil || !s.Enabled() {
		t.Fatal(err)
	}
	body := server.letter(t)
	for _, want := range []string{"To: <ada@example.org>", `From: "Service" <service@example.org>`,
		"Subject: Set a new password", "text/plain", "text/html",
		"Auto-Submitted: auto-generated", "Dear &lt;Ada&gt;", "Dear <Ada>", "token=3Dsml_canary"} {
		if !strings.Contains(body, want) {
			t.Errorf("%q is missing from the body %s", want, body)
		}
	}
	server.mu.Lock()
	defer server.mu.Unlock()
	if server.user != "service" {
		t.Errorf("signed in as %q, want service", server.user)
	}
}

func TestSender_EncryptedServers(t *testing.T) {
	certificate, roots := ownCertificate(t)
	server := &server{}
	m := server.start(t, certificate)
	m.TLS = "starttls"
	s, _ := run(t, Options{Mail: m, TLS: &tls.Config{RootCAs: roots, ServerName: "localhost",
		MinVersion: tls.VersionTLS12}})
	if err := s.Queue(letter); err != nil {
		t.Fatal(err)
	}
	server.letter(t)
	server.mu.Lock()
	if !server.secured {
		t.Error("the mail was sent in clear text")
	}
	server.mu.Unlock()

	stranger, log := run(t, Options{Mail: m}) // it does not trust the certificate
	if err := stranger.Queue(letter); err != nil {
		t.Fatal(err)
	}
	log.waitFor(t, "dropped mail")
	if len(server.arrived) != 0 {
		t.Error("a mail was sent to a server with an untrusted certificate")
	}
}

func TestSender_RefusesServerWithoutTLS(t *testing.T) {
	server := &server{}
	m := server.start(t, nil)
	m.TLS = "starttls"
	s, log := run(t, Options{Mail: m})
	if err := s.Queue(letter); err != nil {
		t.Fatal(err)
	}
	log.waitFor(t, "dropped mail")
	if len(server.arrived) != 0 {
		t.Error("a mail was sent in clear text")
	}
}

func TestSender_RetriesTemporaryRefusals(t *testing.T) {
	later := &smtp.SMTPError{Code: 451, Message: "later, ada@example.org"}
	never := &smtp.SMTPError{Code: 550, Message: "never, ada@example.org"}
	server := &server{refuse: []error{later, later, nil, never, later, later, later, later, later}}
	s, log := run(t, Options{Mail: server.start(t, nil)})
	send := func() {
		t.Helper()
		if err := s.Queue(letter); err != nil {
			t.Fatal(err)
		}
	}
	send()
	server.letter(t)
	send()
	log.waitFor(t, "try=1 err=\"refused with code 550\"")
	send()
	log.waitFor(t, "try=5 err=\"refused with code 451\"")
	if strings.Count(log.String(), "dropped mail") != 2 {
		t.Errorf("want two dropped mails in the log, got: %s", log)
	}
	send()
	server.letter(t)
}

// A server that never responds delays shutdown by at most drainTimeout.
func TestSender_HangingServer(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	held := make(chan net.Conn, 10)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			held <- c
		}
	}()
	s, err := New(Options{Mail: config.Mail{Host: "127.0.0.1", Port: l.Addr().(*net.TCPAddr).Port, From: "a@example.org",
		TLS: "none"}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Queue(letter); err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	if err := s.Serve(ctx); err != nil {
		t.Error(err)
	}
	if took := time.Since(begun); took > drainTimeout+timeout {
		t.Errorf("shutdown took %s, want about drainTimeout", took)
	}
	l.Close()
	<-done
	for len(held) > 0 {
		(<-held).Close()
	}
}

func TestSender_WithoutServer(t *testing.T) {
	s, log := run(t, Options{})
	if err := s.Queue(letter); err != nil || s.Enabled() {
		t.Errorf("%v", err)
	}
	if !strings.Contains(log.String(), "account-1") {
		t.Errorf("the log does not name the account: %s", log)
	}
}

func TestQueueIsBounded(t *testing.T) {
	s, err := New(Options{Mail: config.Mail{Host: "127.0.0.1", Port: 1, From: "a@example.org", TLS: "none"}})
	if err != nil {
		t.Fatal(err)
	}
	for range maxQueue {
		if err := s.Queue(letter); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Queue(letter); !errors.Is(err, ErrFull) {
		t.Errorf("a message beyond the limit: got %v, want ErrFull", err)
	}
}

func TestNew_RefusesInvalidSender(t *testing.T) {
	if _, err := New(Options{Mail: config.Mail{Host: "127.0.0.1", Port: 25, From: "nobody", TLS: "none"}}); err == nil {
		t.Error("taken")
	}
}

func ownCertificate(t *testing.T) (*tls.Config, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{"localhost"},
		NotBefore: time.Now().Add(-time.Hour),
		NotAfter:  time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	own, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(own)
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}},
		MinVersion: tls.VersionTLS12}, roots
}
