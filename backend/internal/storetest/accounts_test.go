package storetest

import (
	"log/slog"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/service-dev/service/backend/internal/account"
	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/link"
	"github.com/service-dev/service/backend/internal/mail"
	"github.com/service-dev/service/backend/internal/secret"
	"github.com/service-dev/service/internal/credential"
)

const password = "correct horse battery"

// people is an account service on a store, together with the mails that it sent.
type people struct {
	*account.Service
	store *database
	clock *clock
	box   *outbox
	links *link.Service
}

type outbox struct {
	mu   sync.Mutex
	sent []mail.Message
	woke chan struct{}
}

func (o *outbox) Enabled() bool { return true }

func (o *outbox) Queue(m mail.Message) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.sent = append(o.sent, m)
	select {
	case o.woke <- struct{}{}:
	default:
	}
	return nil
}

// take returns the mails sent since the last call.
func (o *outbox) take() []mail.Message {
	o.mu.Lock()
	defer o.mu.Unlock()
	all := o.sent
	o.sent = nil
	return all
}

var accountTests = map[string]func(*testing.T, *people){
	"browsers":                     browsers,
	"the address is proved":        addressProved,
	"another address":              anotherAddress,
	"forgotten password":           forgottenPassword,
	"an account made by another":   madeByAnother,
	"a reset revokes":              resetRevokes,
	"a replaced password":          replacedPassword,
	"a replaced, guessed password": guessedBefore,
	"mailed sign-ups":              mailedSignUps,
	"who has an address":           whoHasAnAddress,
	"a flooded address":            floodedAddress,
	"a password changed meanwhile": changedMeanwhile,
	"passwords":                    passwords,
	"guesses":                      guesses,
	"guesses at once":              guessesAtOnce,
	"guesses of a signed-in one":   ownGuesses,
	"mailed links are kept apart":  linksApart,
	"identities":                   identities,
	"last way in":                  lastWayIn,
	"installs":                     installs,
	"activity of signing in":       signInActivity,
	"suspended":                    suspended,
	"export, then gone":            exportThenGone,
	"passkeys of many":             passkeysOfMany,
	"passkey ceremonies":           ceremonies,
}

func TestAccounts(t *testing.T) {
	eachEngine(t, accountTests, func(t *testing.T, db *database, test func(*testing.T, *people)) {
		c := newClock()
		quiet := slog.New(slog.DiscardHandler)
		f := &people{Service: account.New(account.Options{Store: db.accountStore, Hasher: hash, Log: quiet, Now: c.now}),
			store: db, clock: c,
			box: &outbox{woke: make(chan struct{}, 1)}}
		f.Mail, f.SiteURL = f.box, "https://service.example"
		f.links = link.New(link.Options{
			Store: db.linkStore, Hasher: hash, Settings: linkSettings, Log: quiet, Now: c.now,
		})
		test(t, f)
	})
}

func (f *people) signUp(t *testing.T, name string) account.Account {
	t.Helper()
	return must(f.SignUp(t.Context(), name+"@example.org", password))(t)
}

func (f *people) open(t *testing.T, a account.Account, method string) string {
	t.Helper()
	value := must(f.OpenSession(t.Context(), a.ID, account.Visit{Method: method, UserAgent: "Firefox",
		IP: "192.0.2.1"}))(t)
	return value
}

// tokenOf returns the secret of a link.
func tokenOf(link string) string {
	_, token, _ := strings.Cut(link, "?token=")
	return token
}

// token returns the secret of the only mail that was sent.
func (f *people) token(t *testing.T, to, page string) string {
	t.Helper()
	sent := f.box.take()
	if len(sent) != 1 || sent[0].To != to {
		t.Fatalf("got %d mails, want one to %s", len(sent), to)
	}
	u, err := url.Parse(sent[0].Link)
	if err != nil || !strings.HasPrefix(sent[0].Link, f.SiteURL+page+"?token=") || !secret.Valid(credential.Mail,
		u.Query().Get("token")) {
		t.Fatalf("the link in the mail leads to the wrong page (error %v)", err)
	}
	return u.Query().Get("token")
}

func (f *people) verified(t *testing.T, name string) account.Account {
	t.Helper()
	a := f.signUp(t, name)
	fatal(t, f.SendVerification(t.Context(), a.ID))
	want(t, "verify", f.Verify(t.Context(), a.ID, f.token(t, a.Email, "/verify")), nil)
	a, err := f.ByID(t.Context(), a.ID)
	if err != nil || !a.Verified() {
		t.Fatalf("verified %v (error %v), want true", a.Verified(), err)
	}
	return a
}

// actions returns the actions in the account's audit log, oldest first. It omits new accounts, links and sign-ins,
// which signInActivity tests.
func (f *people) actions(t *testing.T, accountID string) string {
	t.Helper()
	log := &audit.Service{Store: f.store.auditStore, Now: f.clock.now}
	all := must(log.List(t.Context(), accountID, audit.Filter{Limit: 100}))(t)
	var names []string
	for i := len(all) - 1; i >= 0; i-- {
		if !slices.Contains([]string{"account.created", "account.signed_in", "link.created"}, all[i].Action) {
			names = append(names, all[i].Action)
		}
	}
	return strings.Join(names, " ")
}

func browsers(t *testing.T, f *people) {
	ada, bob := f.signUp(t, "ada"), f.signUp(t, "bob")
	one := f.open(t, ada, account.ByPassword)
	f.clock.pass(time.Minute)
	two, three := f.open(t, ada, account.ByOIDC+"acme"), f.open(t, ada, account.ByPasskey)
	other := f.open(t, bob, account.ByPassword)
	f.clock.pass(4 * time.Minute)
	if _, err := f.FindSession(t.Context(), one); err != nil { // after five minutes, so the use is recorded
		t.Fatal(err)
	}
	all, err := f.Sessions(t.Context(), ada.ID, one)
	if err != nil || len(all) != 3 || !all[0].Current || all[1].Current || !all[0].UsedAt.Equal(f.clock.now()) ||
		all[0].IP != "192.0.2.1" || all[0].Hash != "" {
		t.Fatalf("browser sessions: got %+v (error %v), want three, the current one first", all, err)
	}
	want(t, "another account ends it", f.EndSession(t.Context(), bob.ID, all[1].ID, audit.Person()), account.ErrNotFound)
	want(t, "no id", f.EndSession(t.Context(), ada.ID, "", audit.Person()), account.ErrNotFound)
	want(t, "end one", f.EndSession(t.Context(), ada.ID, all[0].ID, audit.Person()), nil)
	want(t, "an ended one", errOf(f.FindSession(t.Context(), one)), account.ErrNoSession)
	if n, err := f.EndOtherSessions(t.Context(), ada.ID, two, audit.Person()); err != nil || n != 1 {
		t.Errorf("ended %d other sessions, want 1 (error %v)", n, err)
	}
	want(t, "another one", errOf(f.FindSession(t.Context(), three)), account.ErrNoSession)
	if n, err := f.EndOtherSessions(t.Context(), ada.ID, "", audit.Person()); err != nil || n != 1 {
		t.Errorf("ended %d sessions everywhere, want 1 (error %v)", n, err)
	}
	want(t, "everywhere", errOf(f.FindSession(t.Context(), two)), account.ErrNoSession)
	want(t, "bob's", errOf(f.FindSession(t.Context(), other)), nil)
	if got := f.actions(t, ada.ID); got != strings.TrimSpace(strings.Repeat("account.sessions_ended ", 3)) {
		t.Errorf("audit actions: got %s, want account.sessions_ended three times", got)
	}
}

func addressProved(t *testing.T, f *people) {
	ada := f.signUp(t, "ada")
	var tokens []string
	for range account.MaxMails {
		want(t, "send", f.SendVerification(t.Context(), ada.ID), nil)
		tokens = append(tokens, f.token(t, ada.Email, "/verify"))
	}
	want(t, "a fourth within the hour", f.SendVerification(t.Context(), ada.ID), account.ErrTooManyMails)
	want(t, "an earlier link", f.Verify(t.Context(), ada.ID, tokens[0]), account.ErrBadToken)
	want(t, "a link of another purpose", errOf(f.ResetPassword(t.Context(), tokens[2], password, account.Access{})),
		account.ErrBadToken)
	last := tokens[2]
	bob := f.signUp(t, "bob")
	for _, other := range []string{bob.ID, ""} {
		want(t, "signed in to another account, or to none", f.Verify(t.Context(), other, last), account.ErrOthersToken)
	}
	if got, err := f.ByID(t.Context(), ada.ID); err != nil || got.Verified() {
		t.Errorf("after another account's session used the link: verified %v (error %v), want false", got.Verified(), err)
	}
	want(t, "the last link", f.Verify(t.Context(), ada.ID, last), nil)
	if got, err := f.ByID(t.Context(), ada.ID); err != nil || !got.Verified() {
		t.Errorf("after the last link: verified %v (error %v), want true", got.Verified(), err)
	}
	want(t, "a used link", f.Verify(t.Context(), ada.ID, last), account.ErrBadToken)
	want(t, "send once proved", f.SendVerification(t.Context(), ada.ID), nil)
	if n := len(f.box.take()); n != 0 {
		t.Errorf("%d mails to a verified address, want none", n)
	}
	if strings.Contains(f.store.dump(), last) {
		t.Error("the database contains a mailed link")
	}
	want(t, "send", f.SendVerification(t.Context(), bob.ID), nil)
	f.clock.pass(account.VerifyLife)
	want(t, "an overdue link", f.Verify(t.Context(), bob.ID, f.token(t, bob.Email, "/verify")), account.ErrBadToken)
	want(t, "an hour later", f.SendVerification(t.Context(), bob.ID), nil)
}

func anotherAddress(t *testing.T, f *people) {
	ada, bob := f.verified(t, "ada"), f.signUp(t, "bob")
	change := func(to, pass string) error { return f.ChangeEmail(t.Context(), ada.ID, to, pass, audit.Person()) }
	want(t, "wrong password", change("ada@new.example", "wrong horse battery"), account.ErrBadCredentials)
	want(t, "no address", change("ada", password), account.ErrBadEmail)
	want(t, "one's own address", change(" ADA@example.org", password), account.ErrEmailTaken)
	want(t, "a new address", change(" Ada@New.example", password), nil)
	token := f.token(t, "ada@new.example", "/verify")
	if a, err := f.ByID(t.Context(), ada.ID); err != nil || a.Email != ada.Email {
		t.Errorf("before the new address was confirmed: got address %v (error %v), want the old one", a.Email, err)
	}
	want(t, "bob confirms it", f.Verify(t.Context(), bob.ID, token), account.ErrOthersToken)
	want(t, "ada confirms it", f.Verify(t.Context(), ada.ID, token), nil)
	a, err := f.ByID(t.Context(), ada.ID)
	if err != nil || a.Email != "ada@new.example" || !a.Verified() {
		t.Errorf("got address %v (error %v), want the new one, verified", a.Email, err)
	}
	if sent := f.box.take(); len(sent) != 1 || sent[0].To != ada.Email || sent[0].Link != "" {
		t.Errorf("want one notice to the old address, got %d mails", len(sent))
	}
	// Two accounts change to the same address: the second change fails because the address is taken.
	f.clock.pass(time.Hour)
	carl, dora := f.verified(t, "carl"), f.verified(t, "dora")
	var tokens []string
	for _, who := range []account.Account{carl, dora} {
		want(t, "ask", f.ChangeEmail(t.Context(), who.ID, "same@new.example", password, audit.Person()), nil)
		tokens = append(tokens, f.token(t, "same@new.example", "/verify"))
	}
	want(t, "the first", f.Verify(t.Context(), carl.ID, tokens[0]), nil)
	want(t, "the second", f.Verify(t.Context(), dora.ID, tokens[1]), account.ErrEmailTaken)
	if got := f.actions(t, ada.ID); got != "account.email_verified account.email_asked account.email_changed" {
		t.Errorf("audit actions: got %s, want email_verified, email_asked and email_changed", got)
	}
}

func suspended(t *testing.T, f *people) {
	ada := f.verified(t, "ada")
	cookie := f.open(t, ada, account.ByPassword)
	id := account.Identity{Provider: "acme", Subject: "1", Email: ada.Email, EmailVerified: true}
	want(t, "link", f.LinkIdentity(t.Context(), ada.ID, id, audit.Person()), nil)
	reset := must(f.ResetLink(t.Context(), ada.Email, audit.Operator()))(t)
	f.store.exec("UPDATE accounts SET state = 'suspended' WHERE id = $1", ada.ID)
	want(t, "browser", errOf(f.FindSession(t.Context(), cookie)), account.ErrNoSession)
	want(t, "password", errOf(f.SignIn(t.Context(), ada.Email, password, "")), account.ErrSuspended)
	for _, with := range []account.Identity{id, {Provider: "acme", Subject: "2", Email: ada.Email, EmailVerified: true}} {
		want(t, "identity "+with.Subject, errOf(f.SignInWith(t.Context(), with)), account.ErrSuspended)
	}
	want(t, "new browser", errOf(f.OpenSession(t.Context(), ada.ID, account.Visit{Method: account.ByPasskey})),
		account.ErrSuspended)
	want(t, "mailed link", errOf(f.ResetPassword(t.Context(), tokenOf(reset), "another password", account.Access{})),
		account.ErrSuspended)
	want(t, "operator's link", errOf(f.ResetLink(t.Context(), ada.Email, audit.Operator())), account.ErrSuspended)
	want(t, "verification", f.SendVerification(t.Context(), ada.ID), account.ErrSuspended)
	want(t, "password change", f.ChangePassword(t.Context(), ada.ID, password, "another password", "", audit.Person()),
		account.ErrSuspended)
	f.box.take()
	if err := f.serveOnce(t, ada.Email, "bob@example.org"); err != nil || len(f.box.take()) != 0 {
		t.Errorf("a suspended account received mail (error %v)", err)
	}
}
