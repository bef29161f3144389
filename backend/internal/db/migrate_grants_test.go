package db_test

import (
	"database/sql"
	"fmt"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/pressly/goose/v3"

	"github.com/service-dev/service/backend/internal/assistant"
	"github.com/service-dev/service/backend/internal/dbtest"
	"github.com/service-dev/service/backend/internal/grants"
	"github.com/service-dev/service/test/enginetest"
)

// A grant that limited every field of the assistant's config also limits fields added later. All other rows stay
// unchanged, and a config without a text model uses the operator's default.
func TestMigrate_LimitsOfAllFieldsHoldForNewOnes(t *testing.T) {
	enginetest.EachBlank(t, func(t *testing.T, database func(t *testing.T) string) {
		where := database(t)
		client := migratedTo(t, where, 24)
		exec := func(format string, args ...any) {
			t.Helper()
			if _, err := client.ExecContext(t.Context(), fmt.Sprintf(format, args...)); err != nil {
				t.Fatal(err)
			}
		}
		exec(`INSERT INTO accounts (id, email, password_hash, state, privacy_accepted_at, created_at)
			VALUES ('ada', 'ada@example.org', 'x', 'active', 1, 1)`)
		former := map[string]map[string]grants.Level{
			"all.off": {"realtimeModel": "off", "voice": "off", "memoryModel": "off", "sessionMemory": "off", "sounds": "off"},
			"all.read": {"realtimeModel": "off", "voice": "read", "memoryModel": "read", "sessionMemory": "off",
				"sounds": "off"},
			"some.off": {"realtimeModel": "off", "voice": "off", "memoryModel": "off", "sessionMemory": "off"},
			"default":  {},
		}
		for project, levels := range former {
			exec(`INSERT INTO projects (account_id, app_id, created_at) VALUES ('ada', '%s', 1)`, project)
			exec(`INSERT INTO assistant_configs (account_id, app_id, version, realtime_model, voice, memory_model,
					session_memory, sounds, updated_at, updated_by, updated_link)
				VALUES ('ada', '%s', 3, 'r', 'v', 'm', 1, 0, 5, 'person', '')`, project)
			exec(`INSERT INTO project_grants (account_id, app_id, capability, field, level)
				VALUES ('ada', '%s', 'credentials', '', 'off')`, project)
			for field, level := range levels {
				exec(`INSERT INTO project_grants (account_id, app_id, capability, field, level)
					VALUES ('ada', '%s', 'assistant_config', '%s', '%s')`, project, field, level)
			}
		}
		if err := client.Close(); err != nil {
			t.Fatal(err)
		}
		s := dbtest.OpenAt(t, where)
		defer s.Close()
		service := &grants.Service{Store: grants.NewStore(s)}
		for project, levels := range former {
			want := grants.Default()
			want.Credentials = grants.Off
			for field, level := range levels {
				want.Assistant[field] = level
			}
			switch project {
			case "all.off":
				want.Assistant[grants.TextModel], want.Assistant[grants.GatewayUsage] = grants.Off, grants.Off
			case "all.read":
				want.Assistant[grants.TextModel] = grants.Read
			}
			got, err := service.Of(t.Context(), "ada", project)
			if diff := cmp.Diff(want, got); diff != "" || err != nil {
				t.Errorf("grants of %s: error %v, difference %s", project, err, diff)
			}
			config, err := assistant.NewStore(s).AssistantConfig(t.Context(), "ada", project)
			if err != nil || config.Version != 3 || config.RealtimeModel != "r" || config.Voice != "v" ||
				config.MemoryModel != "m" || config.TextModel != "" || !config.SessionMemory || config.Sounds {
				t.Errorf("%s: got config %+v (error %v), want the old values without a text model", project, config, err)
			}
		}
	})
}

// An account that had chosen its own default keeps the level of gatewayUsage that was built in at that time. All other
// accounts get the new level.
func TestMigrate_KeepsGatewayUsageOfChosenDefaults(t *testing.T) {
	enginetest.EachBlank(t, func(t *testing.T, database func(t *testing.T) string) {
		where := database(t)
		client := migratedTo(t, where, 32)
		for id, rows := range map[string]string{"never": "", "voice": "('voice', 'assistant_config', 'voice', 'off')",
			"off": "('off', 'assistant_config', 'gatewayUsage', 'off'), ('off', 'analytics', '', 'off')"} {
			statements := []string{`INSERT INTO accounts
				(id, email, password_hash, state, privacy_accepted_at, created_at)
				VALUES ('` + id + `', '` + id + `@example.org', 'x', 'active', 1, 1)`}
			if rows != "" {
				statements = append(statements,
					"INSERT INTO account_grants (account_id, capability, field, level) VALUES "+rows)
			}
			for _, statement := range statements {
				if _, err := client.ExecContext(t.Context(), statement); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := client.Close(); err != nil {
			t.Fatal(err)
		}
		s := dbtest.OpenAt(t, where)
		defer s.Close()
		service := &grants.Service{Store: grants.NewStore(s)}
		for id, want := range map[string]grants.Level{
			"never": grants.ReadWrite, "voice": grants.Read, "off": grants.Off,
		} {
			got, _, err := service.All(t.Context(), id)
			if err != nil || got.Assistant[grants.GatewayUsage] != want {
				t.Errorf("account %s: level %s (error %v), want %s", id, got.Assistant[grants.GatewayUsage], err, want)
			}
		}
	})
}

// migratedTo connects to a new database and applies the migrations up to a version.
func migratedTo(t *testing.T, where string, version int64) *sql.DB {
	t.Helper()
	client := enginetest.Connect(t, where)
	dialect := goose.DialectSQLite3
	if enginetest.IsPostgres(where) {
		dialect = goose.DialectPostgres
	}
	provider, err := goose.NewProvider(dialect, client, os.DirFS("migrations"))
	if err == nil {
		_, err = provider.UpTo(t.Context(), version)
	}
	if err != nil {
		t.Fatal(err)
	}
	return client
}
