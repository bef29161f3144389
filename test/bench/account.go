package main

import (
	"fmt"

	"github.com/service-dev/service/test/browser"
)

// The first account on every backend that the benchmark starts. Accounts exist only during the benchmark.
const (
	benchEmail    = "bench@example.org"
	benchPassword = "a long enough password"
)

type linked struct{ *browser.Linked }

func link(base, email string) (*linked, error) {
	l, err := browser.Link(base, email, benchPassword)
	return &linked{l}, err
}

// session opens a new simulator session and returns its id and an app secret.
func (l *linked) session(n int) (id, secret string, err error) {
	var s struct{ SessionID string }
	body := map[string]any{"project": fmt.Sprintf("com.example.bench%d", n%20), "platform": "web", "fresh": true}
	if err := l.Post("/api/sessions", body, &s); err != nil {
		return "", "", err
	}
	var minted struct{ AppSecret string }
	err = l.Post("/api/sessions/"+s.SessionID+"/secrets", map[string]any{}, &minted)
	return s.SessionID, minted.AppSecret, err
}

// projectKeys creates n keys of one project.
func (l *linked) projectKeys(n int) (keys []string, err error) {
	for len(keys) < n && err == nil {
		var key string
		key, err = l.ProjectKey(ingestApp)
		keys = append(keys, key)
	}
	return keys, err
}
