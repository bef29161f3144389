package crowd

import "strings"

var rareStatements = []string{
	`INSERT INTO mail_tokens (hash, account_id, purpose, email, created_at, expires_at)
		{n} SELECT a.id || '-mailed', a.id, 'verify', a.email, {now}, {now} + 3600000`,
	`INSERT INTO sign_ups (hash, email, password_hash, next, created_at, expires_at)
		{n} SELECT a.id || '-sign-up', 'new-' || a.email, 'x', '', {now}, {now} + 3600000`,
	`INSERT INTO passkey_ceremonies (challenge, until, tries, done)
		{n} SELECT a.id || '-challenge', {now} + 600000, 1, 1`,
	`INSERT INTO account_grants (account_id, capability, field, level) {n} SELECT a.id, 'analytics', '', 'off'`,
	`INSERT INTO credit_free_grants (address_hash, network_hash, at)
		{n} SELECT a.id || '-address', a.id || '-network', {now}`,
	`INSERT INTO credit_notices (account_id, project, what, period, day) {n} SELECT a.id, '', 'day', '', '2026-01-02'`,
	`INSERT INTO project_aliases (account_id, alias, app_id, created_at)
		{n} SELECT a.id, 'com.example.old', {app}, {now}`,
	`INSERT INTO project_grants (account_id, app_id, capability, field, level)
		{n} SELECT a.id, {app}, 'analytics', '', 'off'`,
	`INSERT INTO gateway_settings (account_id, app_id) {n} SELECT a.id, {app}`,
	`INSERT INTO connection_pages (account_id, app_id, page_id, version, updated_by, updated_link)
		{n} SELECT a.id, {app}, a.id || '-page', 0, '', ''`,
	`INSERT INTO credentials (account_id, app_id, provider, sealed_for, sealed, wrapped, key_id, hint, set_at,
			requested_by, test_result) {n} SELECT a.id, {app}, 'openai', {app}, 'x', 'x', 'key-1', 'abcd', {now}, '', ''`,
	`INSERT INTO credential_links (hash, account_id, app_id, provider, requested_by, created_at, expires_at)
		{n} SELECT a.id || '-paste', a.id, {app}, 'openai', '', {now}, {now} + 600000`,
	`INSERT INTO local_servers (account_id, app_id, id, base_url, models, keyed, problem, checked_at)
		{n} SELECT a.id, {app}, 'local', 'http://localhost:8081', '[]', 0, '', {now}`,
	`INSERT INTO session_scripts (session_id, body) {n} SELECT {session}, '{}'`,
	`INSERT INTO session_gateway_tokens (hash, session_id, expires_at)
		{n} SELECT a.id || '-gateway', {session}, {now} + 3600000`,
	`INSERT INTO session_displays (session_id, seq, at, kind, chip, type, frame_id, sender, body)
		{n} SELECT {session}, 0, {now}, 'request', '', 'display.show', 'frame', 'app', '{}'`,
}

// rare returns statements for tables in which one in ten of the users added by AddPeople has a row. Their number does
// not depend on Amounts.
func rare() []table {
	var all []table
	for _, statement := range rareStatements {
		all = append(all, table{"", strings.NewReplacer("{app}", "'com.example.app1'", "{session}", "a.id || '-session-1'").
			Replace(statement) + ` FROM accounts a CROSS JOIN n WHERE {who} AND a.id LIKE 'crowd-%7' ON CONFLICT DO NOTHING`})
	}
	return all
}
