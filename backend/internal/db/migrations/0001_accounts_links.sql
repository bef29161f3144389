-- +goose Up
CREATE TABLE accounts (
	id                  TEXT PRIMARY KEY,
	email               TEXT NOT NULL UNIQUE,
	password_hash       TEXT NOT NULL,
	state               TEXT NOT NULL,
	privacy_accepted_at BIGINT NOT NULL,
	created_at          BIGINT NOT NULL
);

CREATE TABLE web_sessions (
	hash       TEXT PRIMARY KEY,
	account_id TEXT NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
	created_at BIGINT NOT NULL,
	expires_at BIGINT NOT NULL
);
CREATE INDEX web_sessions_expires ON web_sessions (expires_at);

CREATE TABLE links (
	id         TEXT PRIMARY KEY,
	account_id TEXT NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
	token_hash TEXT NOT NULL UNIQUE,
	host       TEXT NOT NULL,
	os         TEXT NOT NULL,
	client     TEXT NOT NULL,
	ip         TEXT NOT NULL,
	linked_at  BIGINT NOT NULL,
	expires_at BIGINT,
	used_at    BIGINT,
	revoked_at BIGINT
);
CREATE INDEX links_account ON links (account_id);

CREATE TABLE device_codes (
	device_hash TEXT PRIMARY KEY,
	user_hash   TEXT NOT NULL UNIQUE,
	state       TEXT NOT NULL,
	account_id  TEXT REFERENCES accounts (id) ON DELETE CASCADE,
	link_id     TEXT REFERENCES links (id) ON DELETE CASCADE,
	host        TEXT NOT NULL,
	os          TEXT NOT NULL,
	client      TEXT NOT NULL,
	ip          TEXT NOT NULL,
	created_at  BIGINT NOT NULL,
	expires_at  BIGINT NOT NULL,
	interval_ms BIGINT NOT NULL,
	repolled_at BIGINT
);
CREATE INDEX device_codes_expires ON device_codes (expires_at);
CREATE INDEX device_codes_repolled ON device_codes (repolled_at);

-- +goose Down
DROP TABLE device_codes;
DROP TABLE links;
DROP TABLE web_sessions;
DROP TABLE accounts;
