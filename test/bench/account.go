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

// linkKeys is the number of project keys that a backend creates for one link per minute.
const linkKeys = 10

// projectKeys creates n keys of one project of the first account, with as many links as that needs.
func (l *linked) projectKeys(n int) (keys []string, err error) {
	with := l.Linked
	for len(keys) < n {
		if len(keys)%linkKeys == 0 && len(keys) > 0 {
			if with, err = browser.LinkAgain(l.Base, benchEmail, benchPassword); err != nil {
				return nil, err
			}
		}
		key, err := with.ProjectKey(ingestApp)
		if err != nil {
			return nil, err
		}
		keys = append(keys, key)
	}
	return keys, nil
}
