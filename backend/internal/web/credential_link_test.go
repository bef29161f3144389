package web

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/credentials"
)

// fakeCredentialLinks has one link of ada, and records the value stored with it.
type fakeCredentialLinks struct {
	mu     sync.Mutex
	used   bool
	value  string
	result string
	fail   error // the error that Set and Test return
}

const pasteID = "scl_link-of-ada"

var ownAI = credentials.Provider{ID: "own", Name: "Own AI", Example: "k-..."}

func (f *fakeCredentialLinks) Link(_ context.Context, account, id string) (credentials.Link, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if account != "id-ada@example.com" || id != pasteID || f.used {
		return credentials.Link{}, credentials.ErrUnknownLink
	}
	return credentials.Link{ID: id, Project: "com.example.app", Provider: ownAI,
		ExpiresAt: time.Date(2026, 1, 2, 3, 4, 0, 0, time.UTC), AskedBy: "the agent on <b>maple"}, nil
}

func (f *fakeCredentialLinks) Set(_ context.Context, _, project, provider, value, id string, by audit.Actor) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.fail != nil {
		return f.fail
	}
	if !strings.HasPrefix(value, "k-") {
		return &credentials.InvalidError{Message: "A key of Own AI looks different."}
	}
	if f.used || id != pasteID || project != "com.example.app" || provider != "own" || by != audit.Person() {
		return credentials.ErrUnknownLink
	}
	f.used, f.value = true, value
	return nil
}

func (f *fakeCredentialLinks) Status(_ context.Context, account, project string) ([]credentials.Credential, error) {
	c := credentials.Credential{Provider: ownAI, TestResult: f.result}
	if account == "id-ada@example.com" && project == "com.example.app" && f.used {
		c.Set, c.Hint, c.SetAt, c.SetBy = true, "...1234", time.Now(), "you, asked by the agent on maple"
	}
	return []credentials.Credential{c}, nil
}

func (f *fakeCredentialLinks) Test(_ context.Context, account, _, _ string, _ audit.Actor) (string, error) {
	if account != "id-ada@example.com" || !f.used {
		return "", credentials.ErrNotSet
	}
	f.result = credentials.TestRefused
	return f.result, f.fail
}

const (
	pastePage  = "/account/credentials/" + pasteID
	savedPath  = "/account/credentials/com.example.app/own"
	pasteValue = "k-canary-of-a-value-1234"
)

func TestCredentialLink_Paste(t *testing.T) {
	var log bytes.Buffer
	core, f := newFake(), &fakeCredentialLinks{}
	site := newSite(t, core, func(o *Options) {
		o.CredentialLinks = f
		o.Log = slog.New(slog.NewTextHandler(&log, nil))
	})
	// A visitor who is not signed in signs in first, and then returns to the page.
	v := visit(t, site).get(pastePage).want(http.StatusSeeOther)
	v.get(v.header.Get("Location")).want(http.StatusOK)
	v.signUp("ada@example.com", pastePage).want(http.StatusOK, "com.example.app", "Own AI", "the agent on &lt;b&gt;maple",
		`type="password"`, `autocomplete="off"`, "03:04 UTC")

	form := func(value string) url.Values {
		tokens := v.tokens()
		tokens.Set("value", value)
		return tokens
	}
	v.post(pastePage, form("canary-of-another-form")).want(http.StatusUnprocessableEntity, "looks different",
		`aria-invalid="true"`)
	if strings.Contains(v.page, "canary") {
		t.Error("the page contains the value")
	}
	noToken := form(pasteValue)
	noToken.Del("csrf")
	v.post(pastePage, noToken)
	if v.status != http.StatusForbidden || f.used {
		t.Errorf("without the page's token: got status %d, want 403", v.status)
	}
	v.get(pastePage).post(pastePage, form(pasteValue)).want(http.StatusSeeOther)
	if where := v.header.Get("Location"); where != savedPath || f.value != pasteValue {
		t.Errorf("redirected to %s, want the page of the stored key", where)
	}
	v.get(savedPath).want(http.StatusOK, "...1234", "you, asked by the agent on maple", "Test the key")
	v.post(savedPath+"/test", v.tokens()).want(http.StatusSeeOther)
	v.get(v.header.Get("Location")).want(http.StatusOK, "refuses it")
	v.get(pastePage).want(http.StatusGone, "Ask your agent")
	f.fail = &credentials.MissingKeyError{KeyID: "0a0b0c0d"}
	v.get(savedPath).post(savedPath+"/test", v.tokens()).want(http.StatusConflict, "your key cannot be read")
	if strings.Contains(log.String(), "canary") {
		t.Error("the log contains the value")
	}
}

func TestCredentialLink_OnlyForItsAccount(t *testing.T) {
	core, f := newFake(), &fakeCredentialLinks{}
	site := newSite(t, core, func(o *Options) { o.CredentialLinks = f })
	bob := visit(t, site).get("/signup").signUp("bob@example.com", "/privacy")
	bob.get(pastePage).want(http.StatusGone, "This link has expired", "bob@example.com")
	ada := visit(t, site).get("/signup").signUp("ada@example.com", pastePage).want(http.StatusOK)
	// Bob requests another account's link with his own tokens.
	tokens := bob.get("/").tokens()
	tokens.Set("value", pasteValue)
	bob.post(pastePage, tokens).want(http.StatusGone)
	bob.get(savedPath).want(http.StatusNotFound)
	bob.get("/").post(savedPath+"/test", bob.tokens()).want(http.StatusNotFound)
	if f.used {
		t.Error("another account used the link")
	}
	f.fail = credentials.ErrNotConfigured
	tokens = ada.tokens()
	tokens.Set("value", pasteValue)
	ada.post(pastePage, tokens).want(http.StatusConflict, "set a key to encrypt credentials with")
	f.fail = errors.New("the store cannot be reached")
	ada.get(pastePage).post(pastePage, tokens).want(http.StatusInternalServerError)
	if strings.Contains(ada.page, "canary") || strings.Contains(ada.page, "away") {
		t.Error("the error page reveals details of the failure")
	}
}
