//go:build unix

package account

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"pgregory.net/rapid"

	"github.com/service-dev/service/daemon/internal/statefile"
)

func (m *model) actions() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"": m.check,
		"login": func(t *rapid.T) {
			l := m.link(t)
			m.amid(t, func() {
				err := m.store.Save(l)
				switch m.file.kind {
				case "link":
					if !errors.Is(err, statefile.ErrSymlink) {
						t.Fatalf("save through a symbolic link: %v, want ErrSymlink", err)
					}
					m.unsaved = true
				default:
					if err != nil {
						t.Fatal(err)
					}
					m.saved(contentOf(l))
				}
				delete(m.revoked, l.AuthToken.Reveal())
				m.memory = contentOf(l)
			})
		},
		"logout": func(t *rapid.T) {
			m.amid(t, func() {
				want := m.file.kind != "none" || m.memory.kind == "good"
				if was, err := m.store.Delete(); err != nil || was != want {
					t.Fatalf("logout: %v, %v; want %v", was, err, want)
				}
				m.file, m.memory, m.unsaved = content{kind: "none"}, content{kind: "none"}, false
			})
		},
		"replaced from outside": func(t *rapid.T) {
			l := m.link(t)
			c := contentOf(l)
			fields := map[string]any{"authToken": c.token, "accountId": accountOf(c.token), "scope": "account_full"}
			if c.theirs = rapid.Bool().Draw(t, "theirs"); c.theirs {
				fields["theirs"] = []int{1, 2}
			}
			if c.bare = mintedAt[c.token] == defaultBackend && rapid.Bool().Draw(t, "names no backend"); !c.bare {
				fields["backendUrl"] = mintedAt[c.token]
			}
			if l.ExpiresAt != nil {
				fields["expiresAt"] = l.ExpiresAt.UTC().Format(time.RFC3339)
			}
			data, _ := json.Marshal(fields)
			c.text = string(data)
			m.outside(t, c.text)
			m.changedOutside(c)
		},
		"broken from outside": func(t *rapid.T) {
			text := rapid.SampledFrom(broken).Draw(t, "text")
			m.outside(t, text)
			m.changedOutside(content{kind: "broken", text: text, theirs: strings.Contains(text, "theirs")})
		},
		"made a symbolic link": func(t *rapid.T) {
			_ = os.Remove(m.path())
			if err := os.Symlink(filepath.Join(m.dir, "elsewhere"), m.path()); err != nil {
				t.Fatal(err)
			}
			m.changedOutside(content{kind: "link"})
		},
		"removed from outside": func(t *rapid.T) {
			_ = os.Remove(m.path())
			m.changedOutside(content{kind: "none"})
		},
		"watch event": func(t *rapid.T) { m.amid(t, m.signal) },
		"rejected by the backend": func(t *rapid.T) {
			token := rapid.SampledFrom(tokens).Draw(t, "token")
			m.amid(t, func() { m.store.MarkRevoked(token); m.revoked[token] = true })
		},
		"accepted by the backend": func(t *rapid.T) {
			token := rapid.SampledFrom(tokens).Draw(t, "token")
			m.amid(t, func() { m.store.SetVerified(token, Verdict{At: m.now, OK: true}); m.verified[token] = true })
		},
		"restart": func(*rapid.T) {
			m.close()
			m.open()
			<-m.watched
		},
		"an hour passes":   func(*rapid.T) { m.now = m.now.Add(time.Hour) },
		"concurrent calls": m.atOnce,
	}
}

// atOnce runs logins, a logout and a reload concurrently. Afterwards memory and file must agree on one of the outcomes.
func (m *model) atOnce(t *rapid.T) {
	if m.file.kind == "link" {
		t.Skip("nobody can write")
	}
	theirs := m.file.theirs
	possible := map[string]content{"none": {kind: "none"}}
	var all sync.WaitGroup
	for range rapid.IntRange(2, 4).Draw(t, "logins") {
		l := m.link(t)
		c := contentOf(l)
		if old, ok := possible[c.token]; ok {
			l.ExpiresAt = nil // the same token always has the same expiry
			if c = old; !c.expires.IsZero() {
				l.ExpiresAt = &c.expires
			}
		}
		possible[c.token] = c
		all.Go(func() { _ = m.store.Save(l) })
	}
	out := rapid.Bool().Draw(t, "also log out")
	if out {
		all.Go(func() { _, _ = m.store.Delete() })
	}
	// In the bubble, time does not advance while other goroutines wait for a lock, so Reload could not retry a broken
	// file.
	if m.file.kind != "broken" {
		all.Go(func() { m.store.Reload(context.Background()) })
	}
	all.Wait()
	for token := range possible {
		delete(m.revoked, token)
	}
	l := m.store.Current()
	won, ok := possible[l.AuthToken.Reveal()]
	if l.AuthToken == "" {
		won, ok = content{kind: "none"}, out
	}
	if !ok {
		t.Fatalf("got link %+v, which none of the concurrent calls produces", viewOf(l))
	}
	m.memory, m.file = won, won
	if won.kind == "good" {
		data, _ := os.ReadFile(m.path())
		m.file.theirs = strings.Contains(string(data), "theirs")
		if m.file.theirs && !theirs || !m.file.theirs && theirs && !out {
			t.Fatalf("the file had an unknown field: %v; its content is now %s", theirs, data)
		}
	}
	m.heard(t)
}
