package web

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/service-dev/service/backend/internal/account"
	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/db"
	"github.com/service-dev/service/backend/internal/dbtest"
	"github.com/service-dev/service/backend/internal/link"
	"github.com/service-dev/service/backend/internal/mail"
	"github.com/service-dev/service/backend/internal/oidc"
	"github.com/service-dev/service/backend/internal/passkey"
	"github.com/service-dev/service/backend/internal/secret"
	"github.com/service-dev/service/test/oidctest"
	"github.com/service-dev/service/test/passkeytest"
)

// people holds accounts and codes in a database, and the services that the pages use.
type people struct {
	t         testing.TB
	db        *db.DB
	accounts  *account.Service
	links     *link.Service
	providers *oidc.Service    // nil, as the next one, unless newSignIns made p
	passkeys  *passkey.Service // for passkeySite
	box       *outbox
	hash      secret.Hasher

	mu     sync.Mutex
	frozen time.Time // time does not pass by itself, so that limits do not recover on a slow machine; zero for real time
	passed time.Duration
	onNow  func() // called whenever the accounts read the clock; nil does nothing
}

// newPeople returns people without accounts, and codes of the agent on maple. No mail can be sent.
func newPeople(t testing.TB, codes ...string) *people {
	t.Helper()
	p := &people{t: t, db: dbtest.Open(t), box: &outbox{off: true, sent: make(chan mail.Message, 100)},
		hash: secret.NewHasher(make([]byte, 32)), frozen: time.Now()}
	log := slog.New(slog.DiscardHandler)
	accountsNow := func() time.Time {
		if p.onNow != nil {
			p.onNow()
		}
		return p.now()
	}
	p.accounts = account.New(account.Options{Store: account.NewStore(p.db), Hasher: p.hash, Log: log, Now: accountsNow})
	p.accounts.Mail = p.box
	p.links = link.New(link.Options{Store: link.NewStore(p.db), Hasher: p.hash, Log: log, Now: p.now})
	for _, c := range codes {
		p.addCode(c)
	}
	return p
}

// addCode adds a code of the agent on maple.
func (p *people) addCode(code string) {
	p.t.Helper()
	err := link.NewStore(p.db).InsertCode(context.Background(), link.Code{
		DeviceHash: code, UserHash: p.hash.Hash("user_code", code), State: link.Pending,
		Requester: link.Requester{Host: "maple", OS: "Debian 12", Client: "claude-code 2.1", IP: "192.0.2.7"},
		CreatedAt: p.now().Add(-2 * time.Minute), ExpiresAt: p.now().Add(8 * time.Minute),
	}, audit.Trace{})
	if err != nil {
		p.t.Fatal(err)
	}
}

const (
	acmeFile = `providers:
- {id: acme, name: Acme, issuer: "%s", client_id: "` + oidctest.ClientID + `", client_secret: "` +
		oidctest.ClientSecret + `"}
`
	// passkeySite is the site of passkeys, unless a browser uses them.
	passkeySite = "https://glasses.example"
)

// acmeProvider is the provider Acme, which all tests share because its keys take long to make.
var acmeProvider = sync.OnceValues(oidctest.Start)

// newSignIns returns people who can also use mail, passkeys and the provider Acme.
func newSignIns(t testing.TB, codes ...string) *people {
	t.Helper()
	p := newPeople(t, codes...)
	p.box.off = false
	provider := p.acme()
	provider.SetFaults(oidctest.Faults{})
	var err error
	file := filepath.Join(t.TempDir(), "oidc.yaml")
	if err := os.WriteFile(file, fmt.Appendf(nil, acmeFile, provider.Issuer), 0o600); err != nil {
		t.Fatal(err)
	}
	if p.providers, err = oidc.Load(file, nil, slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	p.usePasskeys(passkeySite)
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- p.accounts.Serve(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return p
}

// acme returns the provider Acme.
func (p *people) acme() *oidctest.Provider {
	p.t.Helper()
	provider, err := acmeProvider()
	if err != nil {
		p.t.Fatal(err)
	}
	return provider
}

// usePasskeys binds passkeys to a site.
func (p *people) usePasskeys(site string) {
	p.t.Helper()
	var err error
	p.passkeys, err = passkey.New(passkey.Options{Store: passkey.NewStore(p.db), SiteURL: site, Key: make([]byte, 32),
		Now: p.now})
	if err != nil {
		p.t.Fatal(err)
	}
}

func (p *people) now() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.frozen.IsZero() {
		return time.Now().Add(p.passed)
	}
	return p.frozen.Add(p.passed)
}

// pass advances the clock.
func (p *people) pass(d time.Duration) { p.with(func() { p.passed += d }) }

func (p *people) with(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f()
}

func (p *people) exec(statement string, args ...any) {
	p.t.Helper()
	dbtest.Exec(p.t, p.db, statement, args...)
}

// count returns the number of rows that a query selects.
func (p *people) count(query string, args ...any) int {
	p.t.Helper()
	n, err := db.QueryValue[int](context.Background(), p.db, "SELECT COUNT(*) FROM "+query, args...)
	if err != nil {
		p.t.Fatal(err)
	}
	return n
}

// value returns the text that a query selects.
func (p *people) value(query string, args ...any) string {
	p.t.Helper()
	v, err := db.QueryValue[string](context.Background(), p.db, "SELECT "+query, args...)
	if err != nil {
		p.t.Fatal(err)
	}
	return v
}

// hashes holds the hashes of passwords, which take long to make.
var hashes sync.Map

// hashOf returns a hash of a password as an account stores it.
func (p *people) hashOf(password string) string {
	p.t.Helper()
	if known, ok := hashes.Load(password); ok {
		return known.(string)
	}
	a, err := p.accounts.SignUp(context.Background(), "hash@example.org", password)
	if err != nil {
		p.t.Fatal(err)
	}
	p.exec("DELETE FROM accounts WHERE id = $1", a.ID)
	hashes.Store(password, a.PasswordHash)
	return a.PasswordHash
}

// add adds an account with the usual password and returns its ID.
func (p *people) add(email string) (id string) {
	p.t.Helper()
	return p.addWith(email, p.hashOf(password))
}

// addWith adds an account with the hash of a password, or "" for an account without one.
func (p *people) addWith(email, hashed string) (id string) {
	p.t.Helper()
	id = idOf(email)
	p.exec(`INSERT INTO accounts (id, email, password_hash, state, privacy_accepted_at, created_at)
		VALUES ($1, $2, $3, 'active', $4, $4)`, id, email, hashed, p.now().UnixMilli())
	return id
}

// idOf returns the ID of an account that add added.
func idOf(email string) string { return "id-" + email }

// hasPassword reports whether this is the password of an account.
func (p *people) hasPassword(email, password string) bool {
	p.t.Helper()
	_, err := p.accounts.SignIn(context.Background(), email, password, "browser")
	if err != nil && !errors.Is(err, account.ErrBadCredentials) {
		p.t.Fatal(err)
	}
	return err == nil
}

// code returns a code as it is stored.
func (p *people) code(code string) link.Code {
	p.t.Helper()
	c, err := link.NewStore(p.db).CodeByUser(context.Background(), p.hash.Hash("user_code", code))
	if err != nil {
		p.t.Fatal(err)
	}
	return c
}

// approver returns the address of the account that approved a code, or "".
func (p *people) approver(code string) string {
	p.t.Helper()
	c := p.code(code)
	if c.State != link.Approved {
		return ""
	}
	a, err := p.accounts.ByID(context.Background(), c.AccountID)
	if err != nil {
		p.t.Fatal(err)
	}
	return a.Email
}

// setState sets the state of a code.
func (p *people) setState(code string, state link.State) {
	p.t.Helper()
	p.exec("UPDATE device_codes SET state = $1 WHERE user_hash = $2", string(state), p.hash.Hash("user_code", code))
}

// expire lets a code expire.
func (p *people) expire(code string) {
	p.t.Helper()
	p.exec("UPDATE device_codes SET expires_at = $1 WHERE user_hash = $2", p.now().Add(-time.Second).UnixMilli(),
		p.hash.Hash("user_code", code))
}

// openSession signs another browser of an account in.
func (p *people) openSession(accountID string, v account.Visit) (secret string) {
	p.t.Helper()
	secret, err := p.accounts.OpenSession(context.Background(), accountID, v)
	if err != nil {
		p.t.Fatal(err)
	}
	return secret
}

// written describes everything that visitors can change: accounts, sessions and codes.
func (p *people) written() string {
	p.t.Helper()
	return fmt.Sprint(p.count("accounts"), p.count("web_sessions"), p.count("sign_ups"), p.count("mail_tokens"),
		p.count("identities"), p.count("passkeys"), p.count("device_codes WHERE state = 'pending'"))
}

// mail returns the next mail.
func (p *people) mail() mail.Message {
	p.t.Helper()
	select {
	case m := <-p.box.sent:
		return m
	case <-time.After(10 * time.Second):
		p.t.Fatal("no mail was sent")
		return mail.Message{}
	}
}

// token returns the token in the link of a mail.
func token(m mail.Message) string {
	_, token, _ := strings.Cut(m.Link, "?token=")
	return token
}

// resetToken returns the token of a link that sets a new password.
func (p *people) resetToken(email string) string {
	p.t.Helper()
	link, err := p.accounts.ResetLink(context.Background(), email, audit.Operator())
	if err != nil {
		p.t.Fatal(err)
	}
	return token(mail.Message{Link: link})
}

// verifyToken returns the token of a link that confirms the address of an account.
func (p *people) verifyToken(accountID string) string {
	p.t.Helper()
	if err := p.accounts.SendVerification(context.Background(), accountID); err != nil {
		p.t.Fatal(err)
	}
	return token(p.mail())
}

// isVerified reports whether an account's address is confirmed.
func (p *people) isVerified(accountID string) bool {
	p.t.Helper()
	a, err := p.accounts.ByID(context.Background(), accountID)
	if err != nil {
		p.t.Fatal(err)
	}
	return a.Verified()
}

// link links an identity of Acme to an account.
func (p *people) link(accountID, provider, subject, email string) {
	p.t.Helper()
	err := p.accounts.LinkIdentity(context.Background(), accountID,
		account.Identity{Provider: provider, Subject: subject, Email: email}, audit.Person())
	if err != nil {
		p.t.Fatal(err)
	}
}

// addPasskey adds a passkey to an account.
func (p *people) addPasskey(email string) *passkeytest.Device {
	t := p.t.(*testing.T)
	t.Helper()
	d := passkeytest.New(t, passkeySite)
	options, sealed, err := p.passkeys.BeginRegister(t.Context(), idOf(email))
	if err != nil {
		t.Fatal(err)
	}
	_, err = p.passkeys.FinishRegister(t.Context(), idOf(email), sealed, d.Create(t, options), "mine", audit.Person())
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// outbox implements account.Outbox for tests that read the mails.
type outbox struct {
	off  bool // no mail server is configured
	sent chan mail.Message
}

func (o *outbox) Enabled() bool { return !o.off }

func (o *outbox) Queue(m mail.Message) error {
	select {
	case o.sent <- m:
	default: // a test that reads no mails
	}
	return nil
}

func newWeb(tb testing.TB, p *people, change ...func(*Options)) http.Handler {
	tb.Helper()
	o := Options{
		Accounts: p.accounts, Links: p.links, Providers: p.providers, Passkeys: p.passkeys,
		Key: []byte(strings.Repeat("k", minKeyBytes)), Now: p.now,
		InstanceID: "test01", Embedded: true, SupportContact: "help@example.com", Version: "1.2.3",
	}
	for _, c := range change {
		c(&o)
	}
	w, err := New(o)
	if err != nil {
		tb.Fatal(err)
	}
	mux := http.NewServeMux()
	w.Mount(mux)
	return mux
}

func newSite(t *testing.T, p *people, change ...func(*Options)) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(newWeb(t, p, change...))
	t.Cleanup(s.Close)
	return s
}
