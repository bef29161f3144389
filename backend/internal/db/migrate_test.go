package db_test

import (
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/service-dev/service/backend/internal/account"
	"github.com/service-dev/service/backend/internal/dbtest"
	"github.com/service-dev/service/backend/internal/link"
	"github.com/service-dev/service/backend/internal/projects"
	"github.com/service-dev/service/backend/internal/secret"
	"github.com/service-dev/service/backend/internal/sessions"
	"github.com/service-dev/service/internal/credential"
	"github.com/service-dev/service/test/enginetest"
)

// The dumps come from the first release, after a day of use with a linked account (test/e2e,
// TestDumpHoldsNoSecret). Every later version must open them without losing data.
func TestOpen_DatabaseOfFirstRelease(t *testing.T) {
	t.Run("sqlite", func(t *testing.T) {
		where := filepath.Join(t.TempDir(), "service.db")
		script, err := os.ReadFile("testdata/mainjob.sqlite.sql")
		if err != nil {
			t.Fatal(err)
		}
		client := enginetest.Connect(t, where)
		if _, err := client.Exec(string(script)); err != nil {
			t.Fatal(err)
		}
		if err := client.Close(); err != nil {
			t.Fatal(err)
		}
		nothingLost(t, where)
		holdsTheDay(t, where)
	})
	t.Run("postgres", func(t *testing.T) {
		postgres := enginetest.Postgres(t)
		where := postgres.Database(t)
		postgres.Load(t, where, "testdata/mainjob.postgres.sql")
		nothingLost(t, where)
		holdsTheDay(t, where)
	})
}

// nothingLost migrates the database and compares every row of every table with its former content, in all former
// columns.
func nothingLost(t *testing.T, database string) {
	t.Helper()
	before := enginetest.ReadContent(t, database)
	for _, table := range []string{"accounts", "web_sessions", "links", "device_codes", "projects", "sessions",
		"session_secrets", "events"} {
		if len(before[table].Rows) == 0 {
			t.Errorf("the dump has no row of %s", table)
		}
	}
	must(t, dbtest.OpenAt(t, database).Close())
	for table, change := range before.Changes(t, database) {
		t.Errorf("%s changed: %s", table, change)
	}
}

func texts(t *testing.T, client *sql.DB, query string) []string {
	t.Helper()
	rows, err := client.QueryContext(t.Context(), query)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var all []string
	for rows.Next() {
		var one string
		if err := rows.Scan(&one); err != nil {
			t.Fatal(err)
		}
		all = append(all, one)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

func holdsTheDay(t *testing.T, database string) {
	t.Helper()
	s := dbtest.OpenAt(t, database)
	defer s.Close()
	for _, email := range []string{"day@example.org", "night@example.org"} {
		a, err := account.NewStore(s).AccountByEmail(t.Context(), email)
		if err != nil || !a.Active {
			t.Fatalf("account %s: got %v (error %v), want it active", email, a, err)
		}
		links, err := link.NewStore(s).AllLinks(t.Context(), a.ID)
		if err != nil || len(links) != 1 || !links[0].RevokedAt.IsZero() {
			t.Errorf("links of %s: got %v (error %v), want one, not revoked", email, links, err)
		}
		// The sessions of that day have ended, but their rows and logs must still exist.
		day := time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)
		open, err := sessions.NewStore(s).OpenSessions(t.Context(), a.ID, day)
		if err != nil || len(open) != 1 || open[0].Project != "com.example.day" {
			t.Fatalf("open sessions of %s: got %v (error %v), want one", email, open, err)
		}
		rows, err := sessions.NewStore(s).SessionEvents(t.Context(), open[0].ID, 0, 100)
		if err != nil || int64(len(rows)) != open[0].LastSeq {
			t.Fatalf("got %d rows with last seq %d (error %v), want one row for each number", len(rows), open[0].LastSeq, err)
		}
		var types []string
		for _, r := range rows {
			types = append(types, r.Type)
		}
		if !strings.Contains(strings.Join(types, " "), "app.attached") {
			t.Errorf("rows of %s: got %v, want app.attached among them", email, types)
		}
		all, err := projects.NewStore(s).Projects(t.Context(), a.ID, "", day)
		if err != nil || len(all) != 1 || all[0].DisplayName != "Day" || all[0].OpenSessions != 1 ||
			all[0].LastActiveAt.IsZero() {
			t.Errorf("projects of %s: got %+v (error %v), want one with an open session", email, all, err)
		}
	}
}

// Keys issued before keys had IDs stay valid for their project, and each gets its own ID.
func TestMigrate_EarlierKeysStayValid(t *testing.T) {
	enginetest.EachBlank(t, func(t *testing.T, database func(t *testing.T) string) {
		where := database(t)
		hasher := secret.NewHasher([]byte("a key of thirty-two bytes or more"))
		keys := []string{secret.New(credential.ProjectKey), secret.New(credential.ProjectKey)}
		client := migratedTo(t, where, 4)
		statements := []string{
			`INSERT INTO accounts (id, email, password_hash, state, privacy_accepted_at, created_at) VALUES ('ada', 'ada@example.org', 'x', 'active', 1, 1)`,
			`INSERT INTO projects (account_id, app_id, created_at) VALUES ('ada', 'com.example.app', 1)`,
		}
		for _, k := range keys {
			statements = append(statements,
				fmt.Sprintf(`INSERT INTO project_keys (hash, account_id, app_id, name, hint, created_at)
				VALUES ('%s', 'ada', 'com.example.app', 'laptop', '%s', 1)`, hasher.Hash("project key", k), k[len(k)-4:]))
		}
		for _, statement := range statements {
			if _, err := client.ExecContext(t.Context(), statement); err != nil {
				t.Fatal(err)
			}
		}
		if err := client.Close(); err != nil {
			t.Fatal(err)
		}
		s := dbtest.OpenAt(t, where)
		defer s.Close()
		service := &projects.Service{Store: projects.NewStore(s), Hasher: hasher, Now: time.Now}
		var ids []string
		for _, k := range keys {
			owner, err := service.Authenticate(t.Context(), k)
			if err != nil || owner.Project != "com.example.app" || len(owner.KeyID) != 36 {
				t.Errorf("owner: got %+v (error %v), want com.example.app and a key ID", owner, err)
			}
			ids = append(ids, owner.KeyID)
		}
		if ids[0] == ids[1] {
			t.Errorf("two keys have the same ID")
		}
		list, err := service.Keys(t.Context(), "ada", "com.example.app")
		if err != nil || len(list) != 2 || list[0].Prefix != "spk_" || list[0].By != "" || list[0].Name != "laptop" {
			t.Errorf("keys: got %+v (error %v), want two from laptop", list, err)
		}
	})
}

// The migrations create the same tables, columns, indexes and references on both engines.
func TestMigrate_SameSchemaOnBothEngines(t *testing.T) {
	postgres := enginetest.Postgres(t)
	schema := func(database, columns, indexes, references string) []string {
		must(t, dbtest.OpenAt(t, database).Close())
		client := enginetest.Connect(t, database)
		defer client.Close()
		all := slices.Concat(texts(t, client, columns), texts(t, client, indexes), texts(t, client, references))
		all = slices.DeleteFunc(all, func(s string) bool { return strings.Contains(s, "goose_db_version") })
		slices.Sort(all)
		return all
	}
	lite := schema(filepath.Join(t.TempDir(), "service.db"),
		`SELECT m.name || '.' || c.name || ' ' || REPLACE(LOWER(c.type), 'blob', 'bytea') || CASE WHEN c."notnull" = 1 OR c.pk > 0 THEN ' not null' ELSE '' END
			FROM sqlite_master m, pragma_table_info(m.name) c WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite_%'`,
		`SELECT 'index ' || name || ' on ' || tbl_name FROM sqlite_master WHERE type = 'index' AND name NOT LIKE 'sqlite_%'`,
		`SELECT m.name || ' refers to ' || f."table" || ', on delete ' || LOWER(f.on_delete) FROM sqlite_master m, pragma_foreign_key_list(m.name) f
			WHERE m.type = 'table' AND f.seq = 0`)
	pg := schema(postgres.Database(t),
		`SELECT table_name || '.' || column_name || ' ' || data_type || CASE WHEN is_nullable = 'NO' THEN ' not null' ELSE '' END
			FROM information_schema.columns WHERE table_schema = 'public'`,
		`SELECT 'index ' || i.indexname || ' on ' || i.tablename FROM pg_indexes i WHERE i.schemaname = 'public'
			AND NOT EXISTS (SELECT 1 FROM pg_constraint c WHERE c.conname = i.indexname)`,
		`SELECT conrelid::regclass::text || ' refers to ' || confrelid::regclass::text || ', on delete ' ||
			CASE confdeltype WHEN 'c' THEN 'cascade' WHEN 'n' THEN 'set null' ELSE 'no action' END FROM pg_constraint WHERE contype = 'f'`)
	if diff := cmp.Diff(lite, pg); diff != "" {
		t.Errorf("SQLite (-) and PostgreSQL (+) differ: %s", diff)
	}
}

// All data of a project or an account is deleted with it: every table that names one references it with ON DELETE
// CASCADE. Audit entries outlive their project.
func TestForeignKeys_DeleteCascades(t *testing.T) {
	where := filepath.Join(t.TempDir(), "service.db")
	must(t, dbtest.OpenAt(t, where).Close())
	client := enginetest.Connect(t, where)
	defer client.Close()
	for table, content := range enginetest.ReadContent(t, where) {
		columns := content.Columns
		cascades := texts(t, client,
			`SELECT "from" || ' of ' || "table" FROM pragma_foreign_key_list('`+table+`') WHERE on_delete = 'CASCADE'`)
		switch {
		case table == "projects" || table == "accounts":
		case table == "audit":
			if !slices.Contains(cascades, "account_id of accounts") {
				t.Errorf("audit entries remain after their account is deleted: %v", cascades)
			}
		case slices.Contains(columns, "app_id"):
			if !slices.Contains(cascades, "app_id of projects") {
				t.Errorf("rows of %s remain after their project is deleted: %v", table, cascades)
			}
		case slices.Contains(columns, "account_id"):
			if !slices.Contains(cascades, "account_id of accounts") {
				t.Errorf("rows of %s remain after their account is deleted: %v", table, cascades)
			}
		}
	}
}

// A row's deletion also deletes the rows that reference it. Without an index on the reference, each deletion would read
// the whole table.
func TestForeignKeys_HaveIndexes(t *testing.T) {
	where := filepath.Join(t.TempDir(), "service.db")
	must(t, dbtest.OpenAt(t, where).Close())
	client := enginetest.Connect(t, where)
	defer client.Close()
	for table := range enginetest.ReadContent(t, where) {
		indexes := texts(t, client, `SELECT (SELECT GROUP_CONCAT(name) FROM pragma_index_info(i.name)) || ',' ||
			COALESCE((SELECT SUBSTR(sql, INSTR(sql, ' WHERE ')) FROM sqlite_master
				WHERE name = i.name AND sql LIKE '% WHERE %'), '')
			FROM pragma_index_list('`+table+`') i`)
		references := texts(t, client,
			`SELECT GROUP_CONCAT("from") || ',' FROM pragma_foreign_key_list('`+table+`') GROUP BY id`)
		for _, columns := range references {
			usable := slices.ContainsFunc(indexes, func(index string) bool {
				before, condition, partial := strings.Cut(index, " WHERE ")
				return strings.HasPrefix(before, columns) && (!partial || condition == strings.Trim(columns, ",")+" IS NOT NULL")
			})
			if !usable {
				t.Errorf("no index of %s begins with its reference (%s); the indexes are %q", table, columns, indexes)
			}
		}
	}
}
