package db_test

import (
	"log/slog"
	"os"
	"strings"
	"testing"

	"github.com/service-dev/service/backend/internal/db"
	"github.com/service-dev/service/test/enginetest"
)

// An ambiguous address is refused, and the error contains no part of it.
func TestOpen_RefusesAmbiguousAddress(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, address := range []string{
		"postgres://u:Secret@Tail@client.example/db",
		"postgres://u:Sec/ret@Tail:1/db",
		"postgres://u:Secret%zz@client.example/db",
		"postgres://u:Sec ret@client.example/db",
		"postgres://u:Secret@client.example:12x/db",
		"postgres://u:Secret@client.example/db?sslmode=Tail",
		"Postgres://u:Secret@client.example/db",
		"mysql://u:Secret@client.example/db",
		"host=client.example password=Secret",
		"dbname = db  Password = 'Secret'",
	} {
		store, openErr := db.Open(t.Context(), address, slog.New(slog.DiscardHandler))
		if openErr == nil {
			store.Close()
		}
		store, attachErr := db.Attach(t.Context(), address)
		if attachErr == nil {
			store.Close()
		}
		for how, err := range map[string]error{"open": openErr, "attach": attachErr} {
			if err == nil {
				t.Errorf("%s %s: no error", how, address)
				continue
			}
			for _, part := range []string{"Secret", "Sec", "Tail", "db.example", "lookup"} {
				if strings.Contains(err.Error(), part) {
					t.Errorf("%s %s: the error contains %q: %v", how, address, part, err)
				}
			}
		}
	}
	if files, err := os.ReadDir("."); err != nil || len(files) > 0 {
		t.Errorf("files were created: %v (%v)", files, err)
	}
}

// An @ after the host is not ambiguous.
func TestAttach_AcceptsAtSignsInSettings(t *testing.T) {
	store, err := db.Attach(t.Context(), "postgres://u:p@127.0.0.1:1/db?application_name=a@b")
	if err == nil {
		store.Close()
	} else if strings.Contains(err.Error(), "@") {
		t.Error(err)
	}
}

// A pool that shares connections between transactions loses the migration lock, so the server refuses it. A session
// pool works.
func TestOpen_BehindPool(t *testing.T) {
	cluster := enginetest.Postgres(t)
	for mode, want := range map[string]string{"transaction": "pool_mode = session", "statement": "", "session": ""} {
		t.Run(mode, func(t *testing.T) {
			store, err := db.Open(t.Context(), cluster.Pool(t, cluster.Database(t), mode), slog.New(slog.DiscardHandler))
			if err == nil {
				store.Close()
			}
			switch {
			case mode == "session" && err != nil:
				t.Error(err)
			case mode != "session" && (err == nil || !strings.Contains(err.Error(), want)):
				t.Errorf("got error %v, want one with %q", err, want)
			}
		})
	}
}
