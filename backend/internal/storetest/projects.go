package storetest

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/service-dev/service/backend/internal/account"
	"github.com/service-dev/service/backend/internal/projects"
	"github.com/service-dev/service/backend/internal/secret"
)

// ProjectStore is what the projects' suite needs.
type ProjectStore interface {
	projects.Store
	InsertAccount(ctx context.Context, a account.Account) error
}

// RunProjects holds the engine against projects and their keys. dump gives every value of the database as text.
func RunProjects(t *testing.T, open func(t *testing.T) (s ProjectStore, dump func() string)) {
	for name, test := range map[string]func(*testing.T, *projectFixture){
		"a key is told once":  keyToldOnce,
		"fifty keys":          fiftyKeys,
		"keys of two at once": keysAtOnce,
		"refused requests":    refusedKeys,
	} {
		t.Run(name, func(t *testing.T) {
			store, dump := open(t)
			c := &clock{at: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
			for _, id := range []string{"ada", "bob"} {
				err := store.InsertAccount(t.Context(), account.Account{ID: id, Email: id + "@example.org", PasswordHash: "x", Active: true,
					PrivacyAccepted: c.now(), CreatedAt: c.now()})
				if err != nil {
					t.Fatal(err)
				}
			}
			test(t, &projectFixture{Service: &projects.Service{Store: store, Hasher: hash, Now: c.now}, clock: c, dump: dump})
		})
	}
}

type projectFixture struct {
	*projects.Service
	clock *clock
	dump  func() string
}

func keyToldOnce(t *testing.T, f *projectFixture) {
	first, err := f.MintKey(t.Context(), "ada", "com.example.app", " laptop ")
	if err != nil {
		t.Fatal(err)
	}
	second, err := f.MintKey(t.Context(), "ada", "com.example.app", "laptop")
	if err != nil {
		t.Fatal(err)
	}
	if !secret.Valid(secret.ProjectKey, first.Secret) || first.Secret == second.Secret {
		t.Error("keys are not two of their form")
	}
	if !strings.HasSuffix(first.Secret, first.Hint) || len(first.Hint) != 4 || !first.CreatedAt.Equal(f.clock.now()) {
		t.Errorf("hint %q, created %v", first.Hint, first.CreatedAt)
	}
	all := f.dump()
	if strings.Contains(all, first.Secret) || !strings.Contains(all, f.Hasher.Hash("project key", first.Secret)) {
		t.Error("the database holds the key itself, or no hash of it")
	}
}

func fiftyKeys(t *testing.T, f *projectFixture) {
	for range projects.MaxKeys {
		if _, err := f.MintKey(t.Context(), "ada", "com.example.app", "x"); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := f.MintKey(t.Context(), "ada", "com.example.app", "x"); !errors.Is(err, projects.ErrTooManyKeys) {
		t.Errorf("one more: %v", err)
	}
	for _, other := range [][2]string{{"ada", "com.example.other"}, {"bob", "com.example.app"}} {
		if _, err := f.MintKey(t.Context(), other[0], other[1], "x"); err != nil {
			t.Errorf("%v: %v", other, err)
		}
	}
}

func keysAtOnce(t *testing.T, f *projectFixture) {
	var made, refused atomic.Int32
	var wg sync.WaitGroup
	for range projects.MaxKeys + 10 {
		wg.Go(func() {
			switch _, err := f.MintKey(t.Context(), "ada", "com.example.app", "x"); {
			case err == nil:
				made.Add(1)
			case errors.Is(err, projects.ErrTooManyKeys):
				refused.Add(1)
			default:
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if made.Load() != projects.MaxKeys || refused.Load() != 10 {
		t.Errorf("%d made, %d refused", made.Load(), refused.Load())
	}
}

func refusedKeys(t *testing.T, f *projectFixture) {
	for _, c := range [][2]string{{"app", "x"}, {"", "x"}, {"com.example.app", ""}, {"com.example.app", "  "},
		{"com.example.app", strings.Repeat("x", 101)}, {"com.example.app", "a\nb"}, {"com.example.app", "\xff"}} {
		_, err := f.MintKey(t.Context(), "ada", c[0], c[1])
		if invalid := (*projects.InvalidError)(nil); !errors.As(err, &invalid) {
			t.Errorf("%q: %v", c, err)
		}
	}
}
