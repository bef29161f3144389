package crowd

// people inserts accounts. Their ids are in random order, as real ones are: 48271 generates the integers modulo the
// prime 2^31-1. created_at is the user's number.
const people = `INSERT INTO accounts (id, email, password_hash, state, privacy_accepted_at, created_at, verified_at)
	{n} SELECT 'crowd-' || (3000000000 + (i + {first} - 1) * 48271 % 2147483647),
		'person' || (i + {first} - 1) || '@crowd.example.org', 'x', 'active', 1, i + {first} - 1, 1 FROM n`

// table is a table to fill. rows is a key of Amounts, or "" for one row.
type table struct {
	rows      string // per account, or per row that the statement joins
	statement string
}

// Row keys begin with the account's id or a number, so that the rows of many users are spread over every index.

// ofAccounts lists the tables of accounts and of the data that identifies users.
var ofAccounts = []table{
	{"", `INSERT INTO web_sessions (hash, account_id, created_at, expires_at, id, method, user_agent, ip, used_at)
			{n} SELECT a.id || '-filled', a.id, {now}, {now} + 2000000000, a.id || '-filled', 'password',
				'Mozilla/5.0 (X11; Linux x86_64) Firefox/140.0', '192.0.2.1', {now} FROM accounts a CROSS JOIN n WHERE {who}`},
	{"links", `INSERT INTO links (id, account_id, token_hash, host, os, client, ip, linked_at, used_at, last_used_at,
				revoked_at) {n} SELECT a.id || '-link-' || i, a.id, a.id || '-token-' || i, 'laptop-' || i, 'linux', 'claude-code',
				'192.0.2.1', {now} - i * 3600000, {now}, {now} - i * 1000, CASE WHEN i % 3 = 0 THEN {now} END
			FROM accounts a CROSS JOIN n WHERE {who}`},
	{"", `INSERT INTO device_codes (device_hash, user_hash, state, account_id, link_id, host, os, client, ip, created_at,
				expires_at, interval_ms, repolled_at) {n} SELECT a.id || '-device', a.id || '-user', 'redeemed', a.id,
				a.id || '-link-1', 'laptop', 'linux', 'claude-code', '192.0.2.1', {now}, {now} + 600000, 5000,
				CASE WHEN a.created_at % 10 = 0 THEN {now} END
			FROM accounts a CROSS JOIN n WHERE {who}`},
	{"", `INSERT INTO identities (provider, subject, account_id, email, linked_at, used_at)
			{n} SELECT 'acme', a.id, a.id, a.email, {now}, {now} FROM accounts a CROSS JOIN n WHERE {who}`},
	{"", `INSERT INTO passkeys (id, account_id, credential_id, name, credential, sign_count, created_at)
			{n} SELECT a.id || '-key', a.id, a.id || '-credential', 'Laptop', '{}', 0, {now}
			FROM accounts a CROSS JOIN n WHERE {who}`},
	{"", `INSERT INTO password_guesses (key, spent_until) {n} SELECT a.id || '-guess', {now} + 86400000 + a.created_at
			FROM accounts a CROSS JOIN n WHERE {who} ON CONFLICT DO NOTHING`},
	{"", `INSERT INTO mails (id, account_id, email, at) {n} SELECT a.id || '-mail', a.id, a.email, {now} - 4000000
			FROM accounts a CROSS JOIN n WHERE {who}`},
	{"", `INSERT INTO credit_balances (account_id, book, posted, held, opened_at)
			{n} SELECT a.id, a.id || '-book', 2000000, 0, {now}
			FROM accounts a CROSS JOIN n WHERE {who} ON CONFLICT (account_id) DO NOTHING`},
	{"calls", `INSERT INTO credit_transfers (id, debit, credit, amount, at, note)
			{n} SELECT 'call:' || a.id || '-' || i, a.id || '-book', 'used', 100, {now} - i * 1000, ''
			FROM accounts a CROSS JOIN n WHERE {who}`},
	{"calls", `INSERT INTO credit_holds (id, account_id, project, amount, charged, state, day, created_at, lease_until)
			{n} SELECT a.id || '-' || i, a.id, 'com.example.app1', 100, 0,
				CASE (a.created_at + i) % 10 WHEN 0 THEN 'open' WHEN 5 THEN 'expired' ELSE 'settled' END, '2026-01-02', {now},
				{now} + 10000000000
			FROM accounts a CROSS JOIN n WHERE {who}`},
}

// ofProjects lists the tables of projects and their reports.
var ofProjects = []table{
	{"projects", `INSERT INTO projects (account_id, app_id, created_at) {n} SELECT a.id, 'com.example.app' || i,
			{now} - i FROM accounts a CROSS JOIN n WHERE {who}`},
	{"", `INSERT INTO assistant_configs (account_id, app_id, version, realtime_model, voice, memory_model, session_memory,
				sounds, updated_at, updated_by, updated_link) {n} SELECT a.id, 'com.example.app' || i, 1, '', '', '', 1, 1, {now},
				'person', '' FROM accounts a CROSS JOIN n WHERE {who}`},
	{"keys", `INSERT INTO project_keys (hash, account_id, app_id, name, hint, created_at, id, actor, last_used_at)
			{n} SELECT p.account_id || p.app_id || i, p.account_id, p.app_id, 'laptop', 'abcd', {now},
				p.account_id || p.app_id || i, 'person', {now}
			FROM accounts a JOIN projects p ON p.account_id = a.id CROSS JOIN n WHERE {who}`},
	{"", `INSERT INTO analytics_projects (id, account_id, app_id, used_day, used)
			{n} SELECT (SELECT COALESCE(MAX(id), 0) FROM analytics_projects) + ROW_NUMBER() OVER (), p.account_id, p.app_id,
				{day}, 0 FROM accounts a JOIN projects p ON p.account_id = a.id CROSS JOIN n WHERE {who}`},
	{"counters", `INSERT INTO analytics_sums (project, span, at, kind, name, n) {n} SELECT p.id, 0, {day} * 24 - i, 0,
				'sessions', 5 FROM accounts a JOIN analytics_projects p ON p.account_id = a.id CROSS JOIN n WHERE {who}`},
	{"counters", `INSERT INTO analytics_slices (project, span, at, kind, version, platform, name, n)
			{n} SELECT p.id, 0, {day} * 24 - i, 0, '1.4.0', 'ios', 'sessions', 5
			FROM accounts a JOIN analytics_projects p ON p.account_id = a.id CROSS JOIN n WHERE {who}`},
	{"seen", `INSERT INTO analytics_seen (project, hash, day) {n} SELECT p.id, CAST('seen-' || i AS {bytes}), {day}
			FROM accounts a JOIN analytics_projects p ON p.account_id = a.id CROSS JOIN n WHERE {who}`},
	{"seen", `INSERT INTO analytics_installs (project, day, hash, hours, weight)
			{n} SELECT p.id, {day}, CAST('install-' || i AS {bytes}), 1, 1
			FROM accounts a JOIN analytics_projects p ON p.account_id = a.id CROSS JOIN n WHERE {who}`},
}

// ofSessions lists the tables of simulator sessions.
var ofSessions = []table{
	{"sessions", `INSERT INTO sessions (id, account_id, link_id, app_id, platform, device_model, is_current,
				created_at, last_active_at, expires_at, closed_at, last_seq, log_bytes, oldest_at)
			{n} SELECT a.id || '-session-' || i, a.id, a.id || '-link-1', 'com.example.app' || (1 + i % 2), 'web', 'even_g1', 0,
				{now} - i * 600000 - {ago29}, {now} - i * 600000 - {ago29},
				CASE WHEN i % 10 = 0 THEN {now} + 80000000 ELSE {now} - i * 600000 END, NULL,
				{events}, {events} * 300, {now} FROM accounts a CROSS JOIN n WHERE {who}`},
	{"", `INSERT INTO session_secrets (session_id, hash, created_at) {n} SELECT s.id, s.id || '-secret', {now}
			FROM accounts a JOIN sessions s ON s.account_id = a.id CROSS JOIN n WHERE {who} AND s.link_id = a.id || '-link-1'`},
	{"", `INSERT INTO session_states (session_id, body) {n} SELECT s.id, '{}'
			FROM accounts a JOIN sessions s ON s.account_id = a.id CROSS JOIN n WHERE {who} AND s.link_id = a.id || '-link-1'`},
	{"events", `INSERT INTO events (session_id, seq, sender, frame_id, kind, type, chip, ok, at, body)
			{n} SELECT s.id, i, 'app', 'frame-' || i, CASE WHEN i % 2 = 0 THEN 'result' ELSE 'request' END, 'display.show', '',
				i % 2, s.created_at + i, '{"tree":{"type":"column","padding":8,"children":[{"type":"text","text":"seconds 10"}]}}'
			FROM accounts a JOIN sessions s ON s.account_id = a.id CROSS JOIN n WHERE {who} AND s.link_id = a.id || '-link-1'`},
	{"", `INSERT INTO account_logs (account_id, bytes) {n} SELECT a.id, 1000 FROM accounts a CROSS JOIN n WHERE {who}
			ON CONFLICT (account_id) DO NOTHING`},
}

// history lists the tables that record actions of users and agents.
var history = []table{
	{"audit", `INSERT INTO audit (id, account_id, at, actor, link_id, action, app_id, summary)
			{n} SELECT '0190-' || (1000000 - i) || a.id, a.id, {now} - i * 60000 - {ago390}, 'agent', a.id || '-link-1',
				'assistant.read', 'com.example.app1', 'read the assistant' FROM accounts a CROSS JOIN n WHERE {who}`},
	{"trail", `INSERT INTO link_trail (id, at, action, code_ref, link_ref, account_ref, address_ref)
			{n} SELECT a.id || '-trail-' || i, {now} - i * 1000 - {ago80}, CASE WHEN i = 1 THEN 'issue' ELSE 'redeem' END,
				a.id || '-code', a.id || '-link', a.id || '-account', 'address' FROM accounts a CROSS JOIN n WHERE {who}`},
	{"calls", `INSERT INTO gateway_calls (id, account_id, app_id, at, model, kind, source, outcome, text_in,
				text_cached, text_out, estimated, duration_ms, micro_usd)
			{n} SELECT a.id || '-' || i, a.id, 'com.example.app1', {now} - i * 60000 - {ago29}, 'gpt', 'chat', 'credit', 'ok',
				1, 1, 1, 0, 1, 1 FROM accounts a CROSS JOIN n WHERE {who}`},
	{"calls", `INSERT INTO gateway_usage (account_id, app_id, hour, model, kind, source, calls, failed, cancelled,
				refused, estimated, text_in, text_cached, text_out, duration_ms, micro_usd)
			{n} SELECT a.id, 'com.example.app1', ({now} / 3600000 - i) * 3600000, 'gpt', 'chat',
				'credit', 1, 0, 0, 0, 0, 1, 1, 1, 1, 1 FROM accounts a CROSS JOIN n WHERE {who}`},
	{"calls", `INSERT INTO credit_spending (account_id, project, period, spent, held)
			{n} SELECT a.id, 'com.example.app1', 'day ' || i, 100, 0 FROM accounts a CROSS JOIN n WHERE {who}`},
	{"telemetry", `INSERT INTO telemetry_events (day, install_hash, id, at, received_at, name, fields)
			{n} SELECT {day} - i % 60, LENGTH(a.email) * 1000003 + a.created_at % 1000000 * 48271 % 2147483647, i,
				{now}, {now}, 'tool.called', '{"tool":"whoAmI","outcome":"ok","durationMs":3,"client":"claude-code"}'
			FROM accounts a CROSS JOIN n WHERE {who} ON CONFLICT DO NOTHING`},
}
