package account

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/service-dev/service/backend/internal/credit"
	"github.com/service-dev/service/backend/internal/db"
)

// exportSection is one section of an account's export: the table, the exported columns and the condition for its rows.
type exportSection struct {
	name, table, columns, where string
}

const ofAccount = "account_id = $1"

// exportSections omit hashes and sealed values, which are useless to the account holder but useful to a thief.
var exportSections = []exportSection{
	{"account", "accounts", "id, email, state, privacy_accepted_at, created_at, verified_at", "id = $1"},
	{"browserSessions", "web_sessions", "id, method, user_agent, ip, created_at, used_at, expires_at", ofAccount},
	{"identities", "identities", "provider, subject, email, linked_at, used_at", ofAccount},
	{"passkeys", "passkeys", "id, name, host, sign_count, created_at, used_at", ofAccount},
	{"mails", "mails", "email, at", ofAccount},
	{"mailedLinks", "mail_tokens", "purpose, email, created_at, expires_at", ofAccount},
	{
		"links", "links",
		"id, host, os, client, ip, linked_at, expires_at, used_at, last_used_at, last_ip, revoked_at", ofAccount,
	},
	{"linkRequests", "device_codes", "state, host, os, client, ip, created_at, expires_at", ofAccount},
	{"projects", "projects", "*", ofAccount},
	{"projectAliases", "project_aliases", "*", ofAccount},
	{"projectKeys", "project_keys", "*", ofAccount},
	{"grants", "project_grants", "*", ofAccount},
	{"grantDefaults", "account_grants", "*", ofAccount},
	{"assistantConfigs", "assistant_configs", "*", ofAccount},
	{"credentials", "credentials", "app_id, provider, hint, set_at, requested_by, tested_at, test_result", ofAccount},
	{"credentialLinks", "credential_links", "app_id, provider, requested_by, created_at, expires_at", ofAccount},
	{
		"memories", "memories", "app_id, generation, created_at, updated_at, used_at, expires_at",
		ofAccount + " AND sealed <> ''",
	},
	{"connectionPages", "connection_pages", "*", ofAccount},
	{"analyticsQuota", "analytics_projects", "app_id, used_day, used", ofAccount},
	{
		"analyticsSums", "analytics_sums s JOIN analytics_projects p ON p.id = s.project",
		"p.app_id, s.span, s.at AS slot, s.kind, s.name, s.n", "p." + ofAccount,
	},
	{
		"analyticsSlices", "analytics_slices s JOIN analytics_projects p ON p.id = s.project",
		"p.app_id, s.span, s.at AS slot, s.kind, s.version, s.platform, s.name, s.n", "p." + ofAccount,
	},
	{"creditBalance", "credit_balances", "*", ofAccount},
	{
		"creditTransfers", "credit_transfers", "*", `id IN (SELECT t.id FROM credit_balances b
			JOIN credit_transfers t ON t.debit = b.book OR t.credit = b.book WHERE b.account_id = $1)`,
	},
	{"creditHolds", "credit_holds", "id, project, amount, charged, state, day, created_at", ofAccount},
	{"creditSpending", "credit_spending", "*", ofAccount},
	{"creditNotices", "credit_notices", "*", ofAccount},
	{"gatewaySettings", "gateway_settings", "*", ofAccount},
	{"localServers", "local_servers", "*", ofAccount},
	{"attestationSettings", "attest_settings", "*", ofAccount},
	{
		"attestedInstalls", "attest_installs",
		"id, app_id, platform, app, environment, created_at, attested_at, expires_at, revoked_at", ofAccount,
	},
	{"attestationRefusals", "attest_refusals", "*", ofAccount},
	{"gatewayUsage", "gateway_usage", "app_id, hour AS hour_at, model, kind, source, " + credit.UsageSums, ofAccount},
	{"gatewayCalls", "gateway_calls", "*", ofAccount},
	{"audit", "audit", "*", ofAccount},
	{"sessions", "sessions", "*", ofAccount},
	{"sessionLogs", "account_logs", "*", ofAccount},
	{"sessionDisplays", "session_displays", "*", "session_id IN (SELECT id FROM sessions WHERE account_id = $1)"},
	{"sessionStates", "session_states", "*", "session_id IN (SELECT id FROM sessions WHERE account_id = $1)"},
	{"sessionScripts", "session_scripts", "*", "session_id IN (SELECT id FROM sessions WHERE account_id = $1)"},
	{"sessionEvents", "events", "*", "session_id IN (SELECT id FROM sessions WHERE account_id = $1)"},
}

// notExported lists the tables that no export contains. They hold keyed hashes and salts, rows that belong to no
// account, and unfinished sign-ups, which a stranger may have started.
var notExported = []string{
	"link_trail", "password_guesses", "sign_ups", "settings", "telemetry_events", "analytics_seen", "analytics_installs",
	"analytics_salts", "session_secrets", "session_gateway_tokens", "passkey_ceremonies", "credit_free_grants",
	"attest_challenges", "attest_tokens", "goose_db_version",
}

// neverExported lists the columns that no section contains, even if the section selects "*".
var neverExported = map[string]bool{
	"hash": true, "account_id": true, "token_hash": true, "password_hash": true, "sealed": true, "wrapped": true,
	"install_hash": true,
}

// ExportAccount calls row with every row that the backend stores about an account, without secrets.
func (s *Store) ExportAccount(
	ctx context.Context, accountID string, row func(section string, fields map[string]any) error,
) error {
	for _, e := range exportSections {
		if err := s.exportSection(ctx, e, accountID, row); err != nil {
			return fmt.Errorf("export %s: %w", e.name, err)
		}
	}
	return nil
}

func (s *Store) exportSection(
	ctx context.Context, e exportSection, accountID string, row func(string, map[string]any) error,
) error {
	//nolint:gosec // constants
	rows, err := s.QueryContext(ctx, "SELECT "+e.columns+" FROM "+e.table+" WHERE "+e.where, accountID)
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
				fields[name] = readable(name, values[i])
			}
		}
		if err := row(e.name, fields); err != nil {
			return err
		}
	}
	return rows.Err()
}

// readable converts a stored value to a readable form: times become text, and JSON text becomes
// JSON.
func readable(column string, value any) any {
	switch v := value.(type) {
	case int64:
		if column == "at" || strings.HasSuffix(column, "_at") {
			return db.FromMS(v).Format("2006-01-02T15:04:05.000Z07:00")
		}
	case []byte:
		return readable(column, string(v))
	case string:
		if strings.HasPrefix(v, "{") && json.Valid([]byte(v)) {
			return json.RawMessage(v)
		}
	}
	return value
}

// DeleteAccount deletes the account and, by foreign keys, all data that belongs to it. Its transfers remain, under a
// random name that no longer identifies the account. It returns ErrNotFound for an unknown account.
func (s *Store) DeleteAccount(ctx context.Context, accountID string, at time.Time) error {
	err := s.WriteAccount(ctx, accountID, func(tx *sql.Tx) error {
		if err := credit.CloseBook(ctx, tx, accountID, at); err != nil {
			return err
		}
		return db.MustChange(ctx, tx, ErrNotFound, "delete account", "DELETE FROM accounts WHERE id = $1", accountID)
	})
	if err == nil {
		_ = s.TruncateJournal(context.WithoutCancel(ctx)) // if this fails, the next Sweep tries again
	}
	return err
}
