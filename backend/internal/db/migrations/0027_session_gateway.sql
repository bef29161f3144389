-- +goose Up
-- The text of a session's assistant script, deleted with the session's event log.
CREATE TABLE session_scripts (
	session_id TEXT PRIMARY KEY REFERENCES sessions (id) ON DELETE CASCADE,
	body       TEXT NOT NULL
);

-- Keyed hashes of the tokens with which the apps of a session call models.
CREATE TABLE session_gateway_tokens (
	hash       TEXT PRIMARY KEY,
	session_id TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
	expires_at BIGINT NOT NULL
);
CREATE INDEX session_gateway_tokens_session ON session_gateway_tokens (session_id, expires_at);
CREATE INDEX session_gateway_tokens_expiry ON session_gateway_tokens (expires_at);

-- +goose Down
DROP TABLE session_gateway_tokens;
DROP TABLE session_scripts;
