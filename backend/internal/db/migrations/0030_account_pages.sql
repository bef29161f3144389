-- +goose Up
-- The account's own default levels for agents, for every project without a level of its own. Only levels that differ
-- from the built-in default. field is empty except for the assistant's config.
CREATE TABLE account_grants (
	account_id TEXT NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
	capability TEXT NOT NULL,
	field      TEXT NOT NULL,
	level      TEXT NOT NULL,
	PRIMARY KEY (account_id, capability, field)
);

-- app_at is when an app first attached to the session. It outlives the session's event log.
ALTER TABLE sessions ADD COLUMN app_at BIGINT;
UPDATE sessions SET app_at =
	(SELECT MIN(e.at) FROM events e WHERE e.session_id = sessions.id AND e.type = 'app.attached');
CREATE INDEX sessions_app ON sessions (account_id, app_at);

-- The open sessions of an account are those that expire latest, however many have ended.
CREATE INDEX sessions_expiry ON sessions (account_id, expires_at);

-- +goose Down
DROP INDEX sessions_expiry;
DROP INDEX sessions_app;
ALTER TABLE sessions DROP COLUMN app_at;
DROP TABLE account_grants;
