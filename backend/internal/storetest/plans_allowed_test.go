package storetest

// smallTables are the tables with a bounded number of rows, with the reason.
var smallTables = map[string]string{
	"settings":        "one row for each setting of the server",
	"analytics_salts": "one row for each of the last days",
}

// allowedPlans are statements that may read rows of many accounts. A statement matches if it contains the fragment.
var allowedPlans = []struct{ statement, reason string }{
	// Admin commands, and the hourly check of the ledger, which recomputes every sum because a wrong one is a bug. They
	// only read, so other calls do not wait for them.
	{"FROM credit_balances b) x WHERE", "check of the ledger"},
	{"FROM credit_spending s) x WHERE", "check of the ledger"},
	{"FROM credit_spending s WHERE s.project = '') x", "check of the ledger"},
	{"FROM credit_spending s WHERE s.project <> '') x", "check of the ledger"},
	{"FROM credit_holds h LEFT JOIN credit_transfers t", "check of the ledger"},
	{"FROM credit_holds h JOIN credit_transfers t", "check of the ledger"},
	{"SELECT COUNT(*), CAST(COALESCE(SUM(posted), 0) AS BIGINT)", "check of the ledger"},
	{"AND lease_until < $1 THEN 1 ELSE 0 END), 0) FROM credit_holds", "check of the ledger"},
	{"SELECT key_id, COUNT(*) FROM credentials WHERE key_id <> ''", "rotation of the credentials key: counts what is left"},
	{"SELECT key_id, COUNT(*) FROM memories WHERE key_id <> ''", "rotation of the credentials key: counts what is left"},
	{"COUNT(DISTINCT install_hash)", "summary of usage events for the operator"},
	{"FROM link_trail WHERE 1 = 1", "the trail is searched rarely; four more indexes would slow down every device code"},
	{"FROM accounts a WHERE $1 = '' OR a.email = $1", "recovery of an embedded backend, which has few accounts"},

	{"WHERE c.key_id = $1 AND (c.account_id, c.app_id, c.provider) > ($2, $3, $4)", "rotation, in parts"},
	{"WHERE c.key_id = $1 AND (c.account_id, c.app_id, c.user_hash) > ($2, $3, $4)", "rotation, in parts"},

	// Requests that read a few rows.
	{"SELECT COALESCE(MAX(id), 0) + 1, $1, $2, 0, 0 FROM analytics_projects", "the last entry of the index"},
	{"SELECT COUNT(*) FROM device_codes WHERE state IN ('pending', 'approved') AND expires_at > $1",
		"codes of the last minutes; only an embedded backend asks"},

	// Sweeps that use an index on a time to find rows that are due, or that were used within a day.
	{"DELETE FROM link_trail WHERE id IN (SELECT id FROM link_trail WHERE at < $1", "lines that are due, in parts"},
	{"ORDER BY at DESC LIMIT 1 OFFSET $1", "counts lines of the trail that anybody can cause, at most a million and one"},
	{"DELETE FROM telemetry_events WHERE (day, install_hash, id) IN", "events that are due, in parts"},
	{"SELECT COUNT(*) FROM telemetry_events", "at most telemetry_max_events entries of an index, once an hour"},
	{"DELETE FROM analytics_installs WHERE (project, day, hash) IN", "installs that are due, in parts"},
	{"DELETE FROM analytics_seen WHERE (project, hash) IN", "event ids that are due, in parts"},
	{"DELETE FROM analytics_sums WHERE span = 0 AND (project, at, kind, name) IN", "counters that are due, in parts"},
	{"DELETE FROM analytics_slices WHERE span = 0 AND (project, at, kind,", "counters that are due, in parts"},
	{"SELECT id FROM attest_installs WHERE attested_at < $1", "installs that are due, once an hour, without a lock"},
	{"DELETE FROM attest_installs WHERE attested_at < $1 AND id IN", "installs that are due, in parts"},
	{"DELETE FROM attest_refusals WHERE day < $1", "a row for each project, day and reason, once an hour"},
	{"DELETE FROM attest_challenges WHERE expires_at <= $1", "challenges of minutes"},
	{"DELETE FROM credit_holds WHERE state <> 'open' AND created_at < $1", "holds that are due"},
	{"DELETE FROM credit_spending WHERE period < $1 AND held = 0", "sums that are due"},
	{"DELETE FROM mail_tokens WHERE account_id = $1 AND purpose = $2 OR expires_at < $3", "tokens that are due"},
	{"id IN (SELECT link_id FROM device_codes WHERE repolled_at < $2)", "codes that were polled again, a few a day"},
	{"SELECT id FROM sessions WHERE oldest_at IS NOT NULL AND last_active_at < $1", "logs that are due"},
	{"SELECT account_id FROM account_logs WHERE bytes > $1 AND account_id IN", "sessions used within a day"},
	{"SELECT account_id, actor, link_id FROM audit WHERE account_id IN (SELECT account_id FROM audit WHERE at >= $1)",
		"entries of a day"},
	{"FROM gateway_calls WHERE (account_id, app_id) IN (SELECT", "calls of a day"},
	{"DELETE FROM session_scripts WHERE EXISTS", "scripts of sessions used within 30 days, which few sessions have"},
	{"SELECT id, account_id FROM credit_holds WHERE state = 'open' AND lease_until < $1", "holds that are due, in parts"},
}

// notExamined are statements on bounded tables, or without a table, that this package does not run.
var notExamined = []string{
	"SELECT pg_xact_status($1::text::xid8)",
	"INSERT INTO settings (name, value) VALUES ('key_check', $1) ON CONFLICT DO NOTHING",
	"INSERT INTO settings (name, value) VALUES ('key_check', $1) ON CONFLICT (name) DO UPDATE " +
		"SET value = excluded.value WHERE settings.value <> excluded.value",
	"SELECT value FROM settings WHERE name = 'key_check'",
	"SELECT COUNT(*) FROM settings",
	"SELECT set_config(s.name, v.value, false) FROM (VALUES",
}
