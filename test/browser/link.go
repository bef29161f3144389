package browser

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"
)

// Linked is a user with an account at a backend, and the token of an install that the user linked.
type Linked struct {
	Base    string
	Browser *Browser
	Token   string
	site    string // an address of the pages where the user is signed in
}

// Link signs up as a new user and completes the device-code flow, acting as both the user and the agent.
func Link(base, email, password string) (*Linked, error) {
	return link(base, func(b *Browser, page string) error { return b.Approve(page, email, password) })
}

// LinkAgain is like Link but links an existing account.
func LinkAgain(base, email, password string) (*Linked, error) {
	return link(base, func(b *Browser, page string) error { return b.ApproveAgain(page, email, password) })
}

func link(base string, approve func(b *Browser, page string) error) (*Linked, error) {
	who, err := New()
	if err != nil {
		return nil, err
	}
	l := &Linked{Base: base, Browser: who}
	var code struct{ DeviceCode, VerificationURL string }
	if err := l.Post("/api/auth/device/code", map[string]any{"scope": "account_full"}, &code); err != nil {
		return nil, err
	}
	if err := approve(who, code.VerificationURL); err != nil {
		return nil, err
	}
	var got struct {
		AuthToken string
		Pending   bool
	}
	for range 60 {
		if err := l.Post("/api/auth/device/token", map[string]any{"deviceCode": code.DeviceCode}, &got); err != nil {
			return nil, err
		}
		if !got.Pending {
			break
		}
		time.Sleep(time.Second)
	}
	l.Token, l.site = got.AuthToken, code.VerificationURL
	return l, nil
}

// Post makes one call, authenticated as the install if it has a token.
func (l *Linked) Post(path string, body, into any) error {
	data, err := json.Marshal(body)
	if err != nil {
		return err
	}
	return l.call(http.MethodPost, path, data, into)
}

// Get makes one call without a body.
func (l *Linked) Get(path string, into any) error { return l.call(http.MethodGet, path, nil, into) }

func (l *Linked) call(method, path string, body []byte, into any) error {
	req, err := http.NewRequest(method, l.Base+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	if l.Token != "" {
		req.Header.Set("Authorization", "Bearer "+l.Token)
	} else {
		req.Header.Set("X-Service-Install-Id", "inst_browser")
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode >= 300 {
		return fmt.Errorf("%s %s responded with status %d: %.200s", method, path, resp.StatusCode, answer)
	}
	return json.Unmarshal(answer, into)
}

// ProjectKey creates a project key for an app. As the project's owner, it removes the daily allowance of calls with a
// key, which new projects have, and any spending caps, so that tests and benchmarks can make many calls.
func (l *Linked) ProjectKey(project string) (string, error) {
	var key struct{ ProjectKey string }
	if err := l.Post("/api/projects/"+project+"/keys", map[string]any{"name": "app"}, &key); err != nil {
		return "", err
	}
	gateway := "/account/projects/" + project + "/gateway"
	site, err := url.Parse(cmp.Or(l.site, l.Base))
	if err != nil {
		return "", err
	}
	page, at, err := l.Browser.Get(site.ResolveReference(&url.URL{Path: gateway}).String())
	if err != nil {
		return "", err
	}
	_, _, err = l.Browser.Submit(page, at, gateway+"/caps", "cap-day", "", "cap-month", "", "cap-keys", "")
	return key.ProjectKey, err
}
