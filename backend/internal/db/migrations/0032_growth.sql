-- +goose Up
-- Indexes that keep sweeps, deletions of accounts and rare queries from reading whole tables.
CREATE INDEX mail_tokens_expires ON mail_tokens (expires_at);
CREATE INDEX device_codes_account ON device_codes (account_id) WHERE account_id IS NOT NULL;
CREATE INDEX device_codes_link ON device_codes (link_id) WHERE link_id IS NOT NULL;
CREATE INDEX sessions_idle ON sessions (last_active_at, account_id) WHERE oldest_at IS NOT NULL;
CREATE INDEX sessions_unswept ON sessions (closed_at) WHERE oldest_at IS NOT NULL AND closed_at IS NOT NULL;
CREATE INDEX credit_holds_created ON credit_holds (created_at) WHERE state <> 'open';
CREATE INDEX analytics_installs_day ON analytics_installs (day);
CREATE INDEX analytics_sums_hour ON analytics_sums (at) WHERE span = 0;
CREATE INDEX analytics_slices_hour ON analytics_slices (at) WHERE span = 0;

-- The latest activity of a project is the last entry of the index.
DROP INDEX sessions_project;
CREATE INDEX sessions_project ON sessions (account_id, app_id, last_active_at);

-- The credentials of a key are read in the order of their projects.
DROP INDEX credentials_key;
CREATE INDEX credentials_key ON credentials (key_id, account_id, app_id, provider);

-- +goose Down
DROP INDEX sessions_project;
CREATE INDEX sessions_project ON sessions (account_id, app_id);
DROP INDEX credentials_key;
CREATE INDEX credentials_key ON credentials (key_id);
DROP INDEX analytics_slices_hour;
DROP INDEX analytics_sums_hour;
DROP INDEX analytics_installs_day;
DROP INDEX credit_holds_created;
DROP INDEX sessions_unswept;
DROP INDEX sessions_idle;
DROP INDEX device_codes_link;
DROP INDEX device_codes_account;
DROP INDEX mail_tokens_expires;
