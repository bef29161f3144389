package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/credentials"
	"github.com/service-dev/service/backend/internal/memory"
	"github.com/service-dev/service/backend/internal/projects"
	"github.com/service-dev/service/test/enginetest"
)

func TestMemory(t *testing.T) {
	eachEngine(t, map[string]func(*testing.T, *memoryFixture){
		"remembered, exported, erased":           memoryLife,
		"erased bytes are gone":                  memoryGone,
		"an erasure fences what began before":    memoryFence,
		"two writers, neither is lost":           memoryTogether,
		"a project remembers so many users":      memoryMaximum,
		"another user's secret":                  memoryOthers,
		"a stolen database without the key":      memoryStolen,
		"a moved row is not decrypted":           memoryMoved,
		"days after the last use":                memoryDays,
		"the owner sees counts and erases":       memoryOwner,
		"a new key":                              memoryRotation,
		"a missing key blocks no new text":       memoryMissingKey,
		"a read that keeps erased bytes":         memoryBusy,
		"all are erased during a first write":    memoryEraseAllTogether,
		"projects that are merged":               memoryMerge,
		"days of projects that are merged":       memoryMergeDays,
		"projects and accounts that are deleted": memoryDeleted,
		"texts that cannot be profiles":          memoryTexts,
	}, func(t *testing.T, db *database, test func(*testing.T, *memoryFixture)) {
		f := &memoryFixture{credentialFixture: &credentialFixture{tenants: newTenants(t, db), store: db,
			catalogue: catalogue(t, "http://localhost")}}
		f.memories = f.withKeys(t, "01")
		test(t, f)
	})
}

type memoryFixture struct {
	*credentialFixture
	memories *memory.Service
}

// withKeys returns a service of another process with these keys.
func (f *memoryFixture) withKeys(t *testing.T, bytes ...string) *memory.Service {
	t.Helper()
	return &memory.Service{Store: f.store.memoryStore, Hasher: hash, Sealer: f.with(t, bytes...), Now: f.clock.now}
}

func user(account, project string) memory.User {
	return memory.User{Account: account, Project: project, Secret: strings.Repeat("0123456789abcdef", 2)}
}

const remembered = "Drinks tea without sugar.\n\tLives in Bergen."

func (f *memoryFixture) put(t *testing.T, u memory.User, text string) memory.Profile {
	t.Helper()
	return must(f.memories.Put(t.Context(), u, text))(t)
}

func (f *memoryFixture) isText(t *testing.T, s *memory.Service, u memory.User, wanted string) {
	t.Helper()
	if p := must(s.Profile(t.Context(), u))(t); p.Text != wanted {
		t.Errorf("profile of %s in %s: got %q, want %q", u.Account, u.Project, p.Text, wanted)
	}
}

func memoryLife(t *testing.T, f *memoryFixture) {
	u := user("ada", appID)
	if p := must(f.memories.Profile(t.Context(), u))(t); p.Text != "" || !p.UpdatedAt.IsZero() || !p.ExpiresAt.IsZero() {
		t.Errorf("profile before: got %+v, want none", p)
	}
	p := f.put(t, u, remembered)
	if p.Text != remembered || !p.UpdatedAt.Equal(f.clock.now()) ||
		!p.ExpiresAt.Equal(f.clock.now().AddDate(0, 0, memory.DefaultDays)) {
		t.Errorf("profile: got %+v, want the text, now and 30 days later", p)
	}
	f.isText(t, f.withKeys(t, "01"), u, remembered) // another process
	if p := f.put(t, u, "Drinks coffee."); p.Text != "Drinks coffee." {
		t.Errorf("replaced profile: got %q", p.Text)
	}
	var exported []map[string]any
	fatal(t, f.store.ExportAccount(t.Context(), "ada", func(section string, fields map[string]any) error {
		if section == "memories" {
			exported = append(exported, fields)
		}
		return nil
	}))
	if len(exported) != 1 || exported[0]["app_id"] != appID || exported[0]["sealed"] != nil || exported[0]["user_hash"] != nil {
		t.Errorf("export: got %v, want one memory without text and hash", exported)
	}
	fatal(t, f.memories.Erase(t.Context(), u))
	fatal(t, f.memories.Erase(t.Context(), u))
	f.isText(t, f.memories, u, "")
	f.put(t, u, remembered)
	f.put(t, u, "") // also erases
	f.isText(t, f.memories, u, "")
	if n := must(f.memories.Summary(t.Context(), "ada", appID))(t).Profiles; n != 0 {
		t.Errorf("profiles after the erasure: got %d, want 0", n)
	}
}

// ciphertext returns the stored form of ada's profile.
func (f *memoryFixture) ciphertext(t *testing.T) string {
	t.Helper()
	rows := f.store.rows("SELECT sealed FROM memories WHERE account_id = 'ada'")
	if len(rows) != 1 || len(rows[0][0]) < 40 {
		t.Fatalf("stored memories: got %v, want one", rows)
	}
	return rows[0][0]
}

// isStored reports whether the files of the database contain a text.
func (f *memoryFixture) isStored(t *testing.T, text string) bool {
	t.Helper()
	if enginetest.IsPostgres(f.store.address) {
		f.store.exec("CHECKPOINT")
		var file []byte
		fatal(t, f.store.client.QueryRowContext(t.Context(),
			"SELECT pg_read_binary_file(pg_relation_filepath('memories'))").Scan(&file))
		return bytes.Contains(file, []byte(text))
	}
	found, files := false, 0
	fatal(t, filepath.WalkDir(filepath.Dir(f.store.address), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := os.ReadFile(path) //nolint:gosec // a file of this test
		files++
		found = found || bytes.Contains(content, []byte(text))
		return err
	}))
	if files == 0 {
		t.Fatalf("there are no files at %s", f.store.address)
	}
	return found
}

func memoryGone(t *testing.T, f *memoryFixture) {
	t.Run("by the app", func(t *testing.T) {
		memoryGoneAfter(t, f, f.memories.Erase)
	})
	t.Run("by a merge", func(t *testing.T) {
		memoryGoneAfter(t, f, func(ctx context.Context, u memory.User) error {
			saved, err := f.memories.Save(ctx, u, must(f.memories.Use(ctx, u))(t), "")
			if err == nil && !saved {
				t.Error("the empty text was not saved")
			}
			return err
		})
	})
}

// memoryGoneAfter proves that erase removes a text from the database's files.
func memoryGoneAfter(t *testing.T, f *memoryFixture, erase func(context.Context, memory.User) error) {
	t.Helper()
	u := user("ada", appID)
	f.put(t, u, remembered)
	sealed := f.ciphertext(t)
	fatal(t, f.store.TruncateJournal(t.Context()))
	if !f.isStored(t, sealed) {
		t.Fatal("the encrypted text is not in the database's files before the erasure, so that this test proves nothing")
	}
	fatal(t, erase(t.Context(), u))
	fatal(t, f.memories.Scrub(t.Context()))
	// VACUUM keeps deleted rows while a transaction of another test, which began before the erasure, runs in the cluster.
	for range 200 {
		if !enginetest.IsPostgres(f.store.address) {
			break
		}
		f.store.exec("VACUUM FULL memories")
		if !f.isStored(t, sealed) {
			return
		}
	}
	if f.isStored(t, sealed) {
		t.Error("the encrypted text is still in the database's files after the erasure")
	}
}

func memoryFence(t *testing.T, f *memoryFixture) {
	stored, fresh := user("ada", appID), user("ada", otherID)
	f.put(t, stored, remembered)
	for _, u := range []memory.User{stored, fresh} {
		before := must(f.memories.Use(t.Context(), u))(t)
		fatal(t, f.memories.Erase(t.Context(), u))
		if saved := must(f.memories.Save(t.Context(), u, before, "late"))(t); saved {
			t.Errorf("%s: what was read before the erasure was saved after it", u.Project)
		}
		after := must(f.withKeys(t, "01").Use(t.Context(), u))(t)
		if after.Text != "" || after.Generation() == before.Generation() {
			t.Errorf("%s: got %+v after the erasure, want no text and another generation", u.Project, after)
		}
		if saved := must(f.memories.Save(t.Context(), u, after, "new"))(t); !saved {
			t.Errorf("%s: a conversation that began after the erasure was not saved", u.Project)
		}
	}
	// The owner's erasure also stops a conversation that no row exists for.
	bob := user("bob", appID)
	before := must(f.memories.Use(t.Context(), bob))(t)
	fatal(t, f.memories.EraseAll(t.Context(), "bob", appID, audit.Person()))
	if saved := must(f.memories.Save(t.Context(), bob, before, "late"))(t); saved ||
		must(f.memories.Use(t.Context(), bob))(t).Generation() == before.Generation() {
		t.Error("a conversation from before the owner's erasure was saved")
	}
	// A conversation that began after an erasure is not saved after another one, even if the first mark is gone.
	fatal(t, f.memories.Erase(t.Context(), bob))
	between := must(f.memories.Use(t.Context(), bob))(t)
	f.clock.pass(25 * time.Hour)
	fatal(t, f.memories.Sweep(t.Context()))
	fatal(t, f.memories.Erase(t.Context(), bob))
	if must(f.memories.Use(t.Context(), bob))(t).Generation() == between.Generation() {
		t.Error("two erasures have the same mark")
	}
	// The mark of an erasure is deleted when no conversation can have begun before it.
	fatal(t, f.memories.Erase(t.Context(), bob))
	f.clock.pass(25 * time.Hour)
	fatal(t, f.memories.Sweep(t.Context()))
	if n := f.store.count("SELECT COUNT(*) FROM memories WHERE account_id = 'bob'"); n != 0 {
		t.Errorf("rows of erased memories after a day: got %d, want 0", n)
	}
}

// memoryMaximum proves that a project remembers a limited number of users, and that an erasure needs no row then.
func memoryMaximum(t *testing.T, f *memoryFixture) {
	u := user("bob", appID)
	before := must(f.memories.Use(t.Context(), u))(t)
	f.store.exec(fmt.Sprintf(`WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d)
		INSERT INTO memories (account_id, app_id, user_hash, sealed_for, sealed, wrapped, key_id, generation, created_at,
			updated_at, used_at, expires_at)
		SELECT 'bob', '%s', 'user ' || i, '%s', 'x', 'x', 'x', 0, 1, 1, 1, 9000000000000000 FROM n`, memory.MaxProfiles, appID,
		appID))
	if _, err := f.memories.Put(t.Context(), u, remembered); !errors.Is(err, memory.ErrTooMany) {
		t.Errorf("one user too many: got %v, want ErrTooMany", err)
	}
	fatal(t, f.memories.Erase(t.Context(), u))
	if must(f.memories.Use(t.Context(), u))(t).Generation() == before.Generation() {
		t.Error("an erasure without a row left no mark")
	}
	if n := f.store.count("SELECT COUNT(*) FROM memories WHERE account_id = 'bob'"); n != memory.MaxProfiles {
		t.Errorf("rows after the erasure: got %d, want %d", n, memory.MaxProfiles)
	}
	f.store.exec("DELETE FROM memories WHERE account_id = 'bob'")
}

func memoryTogether(t *testing.T, f *memoryFixture) {
	u, second := user("ada", appID), f.withKeys(t, "01")
	for range 2 { // without a row, and with one
		a, b := must(f.memories.Use(t.Context(), u))(t), must(second.Use(t.Context(), u))(t)
		if saved := must(f.memories.Save(t.Context(), u, a, "first"))(t); !saved {
			t.Error("the first writer was not saved")
		}
		if saved := must(second.Save(t.Context(), u, b, "second"))(t); saved {
			t.Error("the second writer replaced a text that it had not read")
		}
		f.isText(t, second, u, "first")
	}
}

func memoryOthers(t *testing.T, f *memoryFixture) {
	u := user("ada", appID)
	f.put(t, u, remembered)
	stranger := u
	stranger.Secret = strings.Repeat("f", 32)
	for _, other := range []memory.User{stranger, user("ada", otherID), user("bob", appID)} {
		f.isText(t, f.memories, other, "")
		fatal(t, f.memories.Erase(t.Context(), other))
	}
	f.isText(t, f.memories, u, remembered)
}

func memoryStolen(t *testing.T, f *memoryFixture) {
	u := user("ada", appID)
	f.put(t, u, remembered)
	dump := f.store.dump()
	for _, s := range []string{"tea", "Bergen", u.Secret} {
		if strings.Contains(dump, s) {
			t.Errorf("the database contains %q", s)
		}
	}
	var missing *credentials.MissingKeyError
	if _, err := f.withKeys(t, "02").Profile(t.Context(), u); !errors.As(err, &missing) {
		t.Errorf("with another key: got %v, want the missing key", err)
	}
	none := f.withKeys(t)
	want(t, "read without a key", errOf(none.Profile(t.Context(), u)), memory.ErrNotConfigured)
	want(t, "write without a key", errOf(none.Put(t.Context(), u, "x")), memory.ErrNotConfigured)
	want(t, "empty without a key", errOf(none.Put(t.Context(), u, "")), memory.ErrNotConfigured)
	fatal(t, none.Erase(t.Context(), u))
	f.isText(t, f.memories, u, "")
}

func memoryMoved(t *testing.T, f *memoryFixture) {
	u := user("ada", appID)
	f.put(t, u, remembered)
	f.put(t, user("bob", appID), "x")
	f.store.exec("UPDATE memories SET sealed = (SELECT sealed FROM memories WHERE account_id = 'ada'), wrapped = " +
		"(SELECT wrapped FROM memories WHERE account_id = 'ada') WHERE account_id = 'bob'")
	if p, err := f.memories.Profile(t.Context(), user("bob", appID)); err == nil {
		t.Errorf("another account's text was decrypted: %q", p.Text)
	}
}

func memoryDays(t *testing.T, f *memoryFixture) {
	u := user("ada", appID)
	f.put(t, u, remembered)
	f.clock.pass(29 * 24 * time.Hour)
	if p := must(f.memories.Use(t.Context(), u))(t); p.Text != remembered {
		t.Errorf("after 29 days: got %q, want the text", p.Text)
	}
	f.clock.pass(29 * 24 * time.Hour) // 29 days after the last use
	fatal(t, f.memories.Sweep(t.Context()))
	f.isText(t, f.memories, u, remembered) // not a use
	var invalid *memory.InvalidError
	for _, days := range []int{0, -1, 366} {
		if err := f.memories.SetDays(t.Context(), "ada", appID, days, audit.Person()); !errors.As(err, &invalid) {
			t.Errorf("%d days: got %v, want an InvalidError", days, err)
		}
	}
	want(t, "unknown project", f.memories.SetDays(t.Context(), "ada", "com.example.none", 7, audit.Person()),
		projects.ErrNotFound)
	fatal(t, f.memories.SetDays(t.Context(), "ada", appID, 365, audit.Person()))
	if sum := must(f.memories.Summary(t.Context(), "ada", appID))(t); sum.Days != 365 || sum.Profiles != 1 {
		t.Errorf("summary: got %+v, want 365 days and one profile", sum)
	}
	f.clock.pass(300 * 24 * time.Hour)
	must(f.memories.Use(t.Context(), u))(t)
	fatal(t, f.memories.SetDays(t.Context(), "ada", appID, 1, audit.Person()))
	f.isText(t, f.memories, u, remembered)
	f.clock.pass(24 * time.Hour)
	f.isText(t, f.memories, u, "") // even before the sweep
	f.put(t, user("bob", appID), remembered)
	fatal(t, f.memories.Sweep(t.Context()))
	if n := f.store.count("SELECT COUNT(*) FROM memories"); n != 1 {
		t.Errorf("rows after the sweep: got %d, want only bob's", n)
	}
	f.put(t, u, "again")
	f.isText(t, f.memories, u, "again")
}

func memoryOwner(t *testing.T, f *memoryFixture) {
	u, v := user("ada", appID), user("ada", appID)
	v.Secret = strings.Repeat("a", 32)
	f.put(t, u, remembered)
	begun := f.clock.now()
	f.clock.pass(time.Hour)
	f.put(t, v, remembered)
	f.put(t, user("bob", appID), remembered)
	sum := must(f.memories.Summary(t.Context(), "ada", appID))(t)
	if want := (memory.Summary{Profiles: 2, Oldest: begun, LastUsed: f.clock.now(), Days: 30}); sum != want {
		t.Errorf("summary: got %+v, want %+v", sum, want)
	}
	all := must(f.memories.List(t.Context(), "ada", appID))(t)
	if len(all) != 2 || len(all[0].ID) != 12 || !all[1].CreatedAt.Equal(begun) {
		t.Fatalf("list: got %+v, want v's and u's", all)
	}
	for _, id := range []string{"", "0", strings.Repeat("0", 12), all[0].ID[:11], strings.Repeat("%", 12)} {
		want(t, "id "+id, f.memories.EraseEntry(t.Context(), "ada", appID, id, audit.Person()), memory.ErrNotFound)
	}
	want(t, "bob's id", f.memories.EraseEntry(t.Context(), "bob", appID, all[0].ID, audit.Person()), memory.ErrNotFound)
	fatal(t, f.memories.EraseEntry(t.Context(), "ada", appID, all[0].ID, audit.Person()))
	f.isText(t, f.memories, v, "")
	f.isText(t, f.memories, u, remembered)
	fatal(t, f.memories.EraseAll(t.Context(), "ada", appID, audit.Person()))
	f.isText(t, f.memories, u, "")
	f.isText(t, f.memories, user("bob", appID), remembered)
	entries := f.entries(t, "memory.erased")
	if len(entries) != 2 || entries[1].Summary != "memory of user "+all[0].ID+" erased" {
		t.Errorf("audit entries: got %+v, want two, the first with the ID", entries)
	}
}

func memoryRotation(t *testing.T, f *memoryFixture) {
	f.put(t, user("ada", appID), remembered)
	f.put(t, user("bob", appID), remembered)
	fatal(t, f.memories.Erase(t.Context(), user("ada", otherID)))
	f.Service = f.with(t, "01")
	f.set(t, "ada", appID, "first", keyValue)
	both := f.with(t, "02", "01")
	if ids := must(both.Removable(t.Context()))(t); len(ids) != 0 {
		t.Errorf("removable keys before the rotation: got %v, want none", ids)
	}
	if n, err := both.Rewrap(t.Context()); n != 3 || err != nil {
		t.Errorf("rewrapped %d (error %v), want a credential and two memories", n, err)
	}
	f.isText(t, f.withKeys(t, "02"), user("ada", appID), remembered)
	if ids := must(both.Removable(t.Context()))(t); len(ids) != 1 {
		t.Errorf("removable keys after the rotation: got %v, want one", ids)
	}
	f.store.exec("UPDATE memories SET wrapped = '1.AAAA' WHERE account_id = 'bob'")
	var damaged *credentials.DamagedError
	if n, err := f.with(t, "03", "02").Rewrap(t.Context()); n != 2 || !errors.As(err, &damaged) ||
		!strings.HasPrefix(damaged.Credentials[0].Provider, "memory of user ") {
		t.Errorf("rewrapped %d (error %v), want 2 and bob's memory reported as damaged", n, err)
	}
	var missing *credentials.MissingKeyError
	if _, err := f.with(t, "04", "03").Rewrap(t.Context()); !errors.As(err, &missing) || missing.Credentials != 1 {
		t.Errorf("rotation without bob's key: got %v, want it reported as missing", err)
	}
}

func memoryMerge(t *testing.T, f *memoryFixture) {
	u := user("ada", appID)
	f.put(t, u, remembered)
	fatal(t, f.projects.Merge(t.Context(), "ada", appID, otherID, audit.Person()))
	u.Project = otherID // of the app's key from now on
	f.isText(t, f.memories, u, remembered)
	f.put(t, u, "changed")
	if n, err := f.with(t, "02", "01").Rewrap(t.Context()); n != 1 || err != nil {
		t.Errorf("rewrapped %d (error %v), want 1", n, err)
	}
	f.isText(t, f.withKeys(t, "02"), u, "changed")
	fatal(t, f.memories.Erase(t.Context(), u))
	f.isText(t, f.memories, u, "")
	if got := f.store.rows("SELECT sealed FROM memories WHERE sealed <> ''"); len(got) != 0 {
		t.Errorf("rows after the erasure: got %v, want none with a text", got)
	}
}

func memoryDeleted(t *testing.T, f *memoryFixture) {
	u := user("ada", appID)
	before := f.put(t, u, remembered)
	f.put(t, user("bob", appID), remembered)
	fatal(t, f.projects.Delete(t.Context(), "ada", appID, audit.Person()))
	fatal(t, f.store.DeleteAccount(t.Context(), "bob", f.clock.now()))
	if n := f.store.count("SELECT COUNT(*) FROM memories"); n != 0 {
		t.Errorf("rows after their project and account were deleted: got %d, want 0", n)
	}
	if saved, err := f.memories.Save(t.Context(), u, before, "late"); saved {
		t.Errorf("a deleted project's memory was saved (error %v)", err)
	}
}

func memoryTexts(t *testing.T, f *memoryFixture) {
	u := user("ada", appID)
	var invalid *memory.InvalidError
	for _, text := range []string{strings.Repeat("x", 4097), strings.Repeat("ø", 2049), "a\x00", "a\rb", "\xff", "\u0085"} {
		if _, err := f.memories.Put(t.Context(), u, text); !errors.As(err, &invalid) || strings.Contains(err.Error(), text) {
			t.Errorf("text %.10q: got %v, want an InvalidError without it", text, err)
		}
	}
	f.put(t, u, strings.Repeat("ø", 2048))
}

// memoryMissingKey proves that a text whose key is missing can be replaced and erased.
func memoryMissingKey(t *testing.T, f *memoryFixture) {
	u := user("ada", appID)
	other := f.withKeys(t, "02")
	f.put(t, u, remembered)
	var missing *credentials.MissingKeyError
	if _, err := other.Profile(t.Context(), u); !errors.As(err, &missing) {
		t.Fatalf("reading without the key: got %v", err)
	}
	if p := must(other.Put(t.Context(), u, "changed"))(t); p.Text != "changed" {
		t.Errorf("replaced profile: got %q", p.Text)
	}
	f.put(t, u, remembered) // again with the key that the other lacks
	fatal(t, other.Erase(t.Context(), u))
	f.isText(t, other, u, "")
	if _, err := f.memories.Put(t.Context(), u, remembered); err != nil {
		t.Fatal(err)
	}
	if p := must(other.Put(t.Context(), u, ""))(t); p.Text != "" {
		t.Errorf("emptied profile: got %q", p.Text)
	}
}

// memoryBusy proves that bytes that a read keeps in SQLite's journal are removed when it has ended.
func memoryBusy(t *testing.T, f *memoryFixture) {
	u := user("ada", appID)
	f.put(t, u, remembered)
	text := f.ciphertext(t)
	reader := must(f.store.client.BeginTx(t.Context(), nil))(t)
	defer func() { _ = reader.Rollback() }()
	var n int
	fatal(t, reader.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM memories").Scan(&n))
	fatal(t, f.memories.EraseAll(t.Context(), "ada", appID, audit.Person()))
	if !f.store.Postgres() {
		fatal(t, f.memories.Scrub(t.Context())) // a long read is no failure
		if !f.isStored(t, text) {
			t.Fatal("the read keeps no erased text, so that this test proves nothing")
		}
	}
	fatal(t, reader.Rollback())
	fatal(t, f.memories.Scrub(t.Context()))
	if !f.store.Postgres() && f.isStored(t, text) {
		t.Error("the erased text is in a file of the database")
	}
}

// memoryEraseAllTogether proves that no first text of a user survives an erasure of all that began after it was read.
func memoryEraseAllTogether(t *testing.T, f *memoryFixture) {
	for i := range 20 {
		u := user("ada", appID)
		u.Secret = fmt.Sprintf("%032x", i)
		before := must(f.memories.Use(t.Context(), u))(t)
		var both errgroup.Group
		begin := make(chan struct{})
		both.Go(func() error {
			<-begin
			_, err := f.withKeys(t, "01").Save(t.Context(), u, before, remembered)
			return err
		})
		both.Go(func() error {
			<-begin
			return f.memories.EraseAll(t.Context(), "ada", appID, audit.Person())
		})
		close(begin)
		fatal(t, both.Wait())
		f.isText(t, f.memories, u, "")
	}
}

// memoryMergeDays proves that a merge of projects keeps profiles for the shorter time of both, and fences a
// conversation that has read a profile of the project that became an alias.
func memoryMergeDays(t *testing.T, f *memoryFixture) {
	u := user("ada", appID)
	f.put(t, u, remembered)
	fatal(t, f.memories.SetDays(t.Context(), "ada", otherID, 7, audit.Person()))
	fatal(t, f.projects.Merge(t.Context(), "ada", appID, otherID, audit.Person()))
	u.Project = otherID
	before := must(f.memories.Use(t.Context(), u))(t)
	if want := f.clock.now().AddDate(0, 0, 7); before.Text != remembered || !before.ExpiresAt.Equal(want) {
		t.Errorf("got %q until %v, want the text until %v", before.Text, before.ExpiresAt, want)
	}
	for _, erase := range []func() error{
		func() error { return f.memories.Erase(t.Context(), u) },
		func() error { return f.memories.EraseAll(t.Context(), "ada", otherID, audit.Person()) },
	} {
		fatal(t, erase())
		if saved := must(f.memories.Save(t.Context(), u, before, "late"))(t); saved {
			t.Error("what was read before the erasure was saved after it")
		}
		if after := must(f.memories.Use(t.Context(), u))(t); after.Text != "" || after.Generation() == before.Generation() {
			t.Errorf("got %+v after the erasure, want no text and another generation", after)
		}
		f.put(t, u, remembered)
		before = must(f.memories.Use(t.Context(), u))(t)
	}
}
