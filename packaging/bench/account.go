package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/service-dev/service/packaging/browser"
)

// linked is a person with an account at a backend, and the token of the install they linked.
type linked struct {
	base    string
	browser *browser.Browser
	token   string
}

// The account of every backend that this bench starts; it lives as long as the bench.
const (
	benchEmail    = "bench@example.org"
	benchPassword = "a long enough password"
)

// link goes through the device-code flow as a person and their agent do.
func link(base string) (*linked, error) {
	who, err := browser.New()
	if err != nil {
		return nil, err
	}
	l := &linked{base: base, browser: who}
	var code struct{ DeviceCode, VerificationURL string }
	if err := l.post("/api/auth/device/code", map[string]any{"scope": "account_full"}, &code); err != nil {
		return nil, err
	}
	if err := who.Approve(code.VerificationURL, benchEmail, benchPassword); err != nil {
		return nil, err
	}
	var got struct {
		AuthToken string
		Pending   bool
	}
	for range 60 {
		if err := l.post("/api/auth/device/token", map[string]any{"deviceCode": code.DeviceCode}, &got); err != nil {
			return nil, err
		}
		if !got.Pending {
			break
		}
		time.Sleep(time.Second)
	}
	l.token = got.AuthToken
	return l, nil
}

// post makes one call, as the install until there is a token.
func (l *linked) post(path string, body, into any) error {
	data, err := json.Marshal(body)
	if err != nil {
		return err
	}
	req, err := http.NewRequest(http.MethodPost, l.base+path, bytes.NewReader(data))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	if l.token != "" {
		req.Header.Set("Authorization", "Bearer "+l.token)
	} else {
		req.Header.Set("X-Service-Install-Id", "inst_bench")
	}
	status, answer, err := do(http.DefaultClient, req)
	if err != nil {
		return err
	}
	if status >= 300 {
		return fmt.Errorf("POST %s answered %d", path, status)
	}
	return json.Unmarshal(answer, into)
}

// session opens a fresh simulator session and returns its id and an app secret.
func (l *linked) session(n int) (id, secret string, err error) {
	var s struct{ SessionID string }
	body := map[string]any{"project": fmt.Sprintf("com.example.bench%d", n%20), "platform": "web", "fresh": true}
	if err := l.post("/api/sessions", body, &s); err != nil {
		return "", "", err
	}
	var minted struct{ AppSecret string }
	err = l.post("/api/sessions/"+s.SessionID+"/secrets", map[string]any{}, &minted)
	return s.SessionID, minted.AppSecret, err
}
