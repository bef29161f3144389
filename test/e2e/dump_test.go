//go:build unix

package e2e

import (
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	_ "modernc.org/sqlite" // reads the backend's database file from this process
)

// After a linked user has used the service for a day, a database dump contains no install id together with an
// account, and no code, token or secret in plain text. With SERVICE_UPDATE_DUMPS set, the test stores the dumps as
// input for future migration tests.
func TestDumpHoldsNoSecret(t *testing.T) {
	t.Parallel()
	for _, engine := range []string{"sqlite", "postgres"} {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			database, dump := newDatabase(t, engine)
			b := startBackend(t, database)
			canaries := linkedDay(t, newWorld(t, "", "SERVICE_BACKEND_URL="+b.url))
			text := dump()
			for what, secret := range canaries {
				if secret == "" {
					t.Errorf("%s was not captured", what)
				} else if strings.Contains(text, secret) {
					t.Errorf("the dump contains the %s", what)
				}
			}
			for _, table := range []string{"accounts", "links", "device_codes", "link_trail", "sessions",
				"session_secrets", "events", "projects"} {
				if !strings.Contains(text, "INSERT INTO "+table) &&
					!strings.Contains(text, "INSERT INTO public."+table) {
					t.Errorf("the dump has no rows of %s", table)
				}
			}
			if os.Getenv("SERVICE_UPDATE_DUMPS") != "" {
				file := filepath.Join("..", "..", "backend", "internal", "db", "testdata",
					"mainjob."+engine+".sql")
				if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// newDatabase creates an empty database of an engine; dump returns all of its content.
func newDatabase(t *testing.T, engine string) (database string, dump func() string) {
	t.Helper()
	if engine == "postgres" {
		database = newPostgres(t)
		return database, func() string { return started.Load().Dump(t, database) }
	}
	database = filepath.Join(t.TempDir(), "service.db")
	return database, func() string { return dumpSQLite(t, database) }
}

// linkedDay runs login, simulator, logout and a second login, and returns every secret that occurred.
func linkedDay(t *testing.T, w *world) map[string]string {
	t.Helper()
	seen := map[string]string{"password": password}
	var install struct{ InstallID string }
	for day, email := range []string{"day@example.org", "night@example.org"} {
		a := startAgent(w, "modern", false)
		asked := a.call("createSimulatorSession", map[string]any{"project": "com.example.day", "openBrowser": false})
		seen[fmt.Sprint("device code ", day)], seen[fmt.Sprint("user code ", day)] = asked.str(t,
			"deviceCode"), asked.str(t, "userCode")
		someone := newPerson(t)
		someone.approve(asked.str(t, "verificationUrl"), email)
		for _, cookie := range someone.client.Jar.Cookies(someone.at) {
			seen[fmt.Sprint("cookie ", day)] = cookie.Value[strings.LastIndex(cookie.Value, ".")+1:]
		}
		linked := a.call("completeAuthLink", map[string]any{"deviceCode": asked.str(t, "deviceCode")})
		checkLinked(t, w, linked)
		session := a.call("createSimulatorSession", map[string]any{"project": "com.example.day", "openBrowser": false})
		runExampleApp(t, w, session)
		must(t, "the app is in the event log", func() bool {
			return strings.Contains(eventTypes(t, a.call("getEventLog",
				map[string]any{"sessionId": session.str(t, "sessionId")})), "app.attached")
		})
		secret, err := os.ReadFile(session.str(t, "appTokenFile"))
		if err != nil {
			t.Fatal(err)
		}
		var auth struct{ AuthToken string }
		if !readJSON(filepath.Join(w.dir, "auth.json"), &auth) ||
			!readJSON(filepath.Join(w.dir, "install.json"), &install) {
			t.Fatal("failed to parse the state files")
		}
		seen[fmt.Sprint("session secret ", day)] = strings.TrimSpace(string(secret))
		seen[fmt.Sprint("token ", day)] = auth.AuthToken
		if day == 0 {
			if _, _, code := w.ctl("logout"); code != 0 {
				t.Fatalf("logout: exit %d, want 0", code)
			}
		}
	}
	seen["install id"] = install.InstallID
	return seen
}

// dumpSQLite returns the whole database as SQL.
func dumpSQLite(t *testing.T, file string) string {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+file+"?mode=ro")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var out strings.Builder
	objects, err := db.Query("SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%' ORDER BY type = 'index', rowid")
	if err != nil {
		t.Fatal(err)
	}
	defer objects.Close()
	var tables []string
	for objects.Next() {
		var kind, name, statement string
		if err := objects.Scan(&kind, &name, &statement); err != nil {
			t.Fatal(err)
		}
		out.WriteString(statement + ";\n")
		if kind == "table" {
			tables = append(tables, name)
		}
	}
	if err := objects.Err(); err != nil {
		t.Fatal(err)
	}
	for _, table := range tables {
		dumpTable(t, db, table, &out)
	}
	return out.String()
}

func dumpTable(t *testing.T, db *sql.DB, table string, out *strings.Builder) {
	t.Helper()
	rows, err := db.Query("SELECT * FROM " + table)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		t.Fatal(err)
	}
	for rows.Next() {
		values := make([]any, len(columns))
		for i := range values {
			values[i] = new(any)
		}
		if err := rows.Scan(values...); err != nil {
			t.Fatal(err)
		}
		texts := make([]string, len(columns))
		for i, v := range values {
			switch x := (*v.(*any)).(type) {
			case nil:
				texts[i] = "NULL"
			case int64:
				texts[i] = fmt.Sprint(x)
			default:
				texts[i] = "'" + strings.ReplaceAll(fmt.Sprintf("%s", x), "'", "''") + "'"
			}
		}
		fmt.Fprintf(out, "INSERT INTO %s (%s) VALUES (%s);\n", table, strings.Join(columns, ", "),
			strings.Join(texts, ", "))
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
}
