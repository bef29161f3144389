package sqlstore

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/service-dev/service/backend/internal/account"
)

// exported is one section of an account's export: the rows of a table and which of its columns are handed out.
type exported struct {
	section, table, columns, where string
}

const ofAccount = "account_id = $1"

// exports leaves out hashes and whatever is sealed: they are of no use to a person and of some to a thief.
var exports = []exported{
	{"account", "accounts", "id, email, state, privacy_accepted_at, created_at, verified_at", "id = $1"},
	{"browserSessions", "web_sessions", "id, method, user_agent, ip, created_at, used_at, expires_at", ofAccount},
	{"identities", "identities", "provider, subject, email, linked_at, used_at", ofAccount},
	{"passkeys", "passkeys", "id, name, sign_count, created_at, used_at", ofAccount},
	{"mails", "mails", "email, at", ofAccount},
	{"mailedLinks", "mail_tokens", "purpose, email, created_at, expires_at", ofAccount},
	{"links", "links", "id, host, os, client, ip, linked_at, expires_at, used_at, last_used_at, last_ip, revoked_at", ofAccount},
	{"linkRequests", "device_codes", "state, host, os, client, ip, created_at, expires_at", ofAccount},
	{"projects", "projects", "*", ofAccount},
	{"projectAliases", "project_aliases", "*", ofAccount},
	{"projectKeys", "project_keys", "*", ofAccount},
	{"grants", "project_grants", "*", ofAccount},
	{"assistantConfigs", "assistant_configs", "*", ofAccount},
	{"credentials", "credentials", "app_id, provider, hint, set_at, requested_by, tested_at, test_result", ofAccount},
	{"credentialLinks", "credential_links", "app_id, provider, requested_by, created_at, expires_at", ofAccount},
	{"connectionPages", "connection_pages", "*", ofAccount},
	{"analyticsQuota", "analytics_projects", "app_id, used_day, used", ofAccount},
	{"analyticsSums", "analytics_sums s JOIN analytics_projects p ON p.id = s.project", "p.app_id, s.span, s.at AS slot, s.kind, s.name, s.n", "p." + ofAccount},
	{"audit", "audit", "*", ofAccount},
	{"sessions", "sessions", "*", ofAccount},
	{"sessionLogs", "account_logs", "*", ofAccount},
	{"sessionDisplays", "session_displays", "*", "session_id IN (SELECT id FROM sessions WHERE account_id = $1)"},
	{"sessionEvents", "events", "*", "session_id IN (SELECT id FROM sessions WHERE account_id = $1)"},
}

// notExported are the tables that hold nothing a person could read: keyed hashes of events and installs already counted,
// their salts, hashes of sessions' secrets, challenges of sign-ins, the trail of linking, which is hashes throughout, and
// events of installs and settings of the server, which no account hangs on; how many wrong passwords were tried, under
// hashes; and sign-ups that nobody has finished, who may be anybody.
var notExported = []string{"link_trail", "password_guesses", "sign_ups", "settings", "telemetry_events", "analytics_seen", "analytics_installs", "analytics_salts", "session_secrets", "passkey_ceremonies", "goose_db_version"}

// neverExported are columns that no section holds, whatever it asks for.
var neverExported = map[string]bool{"hash": true, "account_id": true, "token_hash": true, "password_hash": true, "sealed": true, "wrapped": true, "install_hash": true}

// ExportAccount gives every row that the backend holds of an account, without secrets.
func (s *Store) ExportAccount(ctx context.Context, accountID string, row func(section string, fields map[string]any) error) error {
	for _, e := range exports {
		if err := s.exportTable(ctx, e, accountID, row); err != nil {
			return fmt.Errorf("exporting %s: %w", e.section, err)
		}
	}
	return nil
}

func (s *Store) exportTable(ctx context.Context, e exported, accountID string, row func(string, map[string]any) error) error {
	rows, err := s.reads.QueryContext(ctx, "SELECT "+e.columns+" FROM "+e.table+" WHERE "+e.where, accountID) //nolint:gosec // constants
	if err != nil {
		return err
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		return err
	}
	for rows.Next() {
		values := make([]any, len(columns))
		into := make([]any, len(columns))
		for i := range values {
			into[i] = &values[i]
		}
		if err := rows.Scan(into...); err != nil {
			return err
		}
		fields := make(map[string]any, len(columns))
		for i, name := range columns {
			if !neverExported[name] {
				fields[name] = plain(name, values[i])
			}
		}
		if err := row(e.section, fields); err != nil {
			return err
		}
	}
	return rows.Err()
}

// plain makes a stored value readable: times as text, JSON as JSON.
func plain(column string, value any) any {
	switch v := value.(type) {
	case int64:
		if column == "at" || strings.HasSuffix(column, "_at") {
			return fromMS(v).Format("2006-01-02T15:04:05.000Z07:00")
		}
	case []byte:
		return plain(column, string(v))
	case string:
		if strings.HasPrefix(v, "{") && json.Valid([]byte(v)) {
			return json.RawMessage(v)
		}
	}
	return value
}

// DeleteAccount deletes the account; what belongs to it goes with it by its foreign keys. account.ErrNotFound.
func (s *Store) DeleteAccount(ctx context.Context, accountID string) error {
	err := s.write(ctx, func(tx *sql.Tx) error {
		gone, err := changed(ctx, tx, "DELETE FROM accounts WHERE id = $1", accountID)
		if err == nil && !gone {
			return account.ErrNotFound
		}
		return err
	})
	if err == nil {
		_ = s.emptyJournal(context.WithoutCancel(ctx)) // it is deleted all the same, and the next Sweep tries again
	}
	return err
}
