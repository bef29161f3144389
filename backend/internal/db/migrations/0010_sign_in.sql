-- +goose Up
-- verified_at is when the account holder proved to own the address; NULL if not yet.
ALTER TABLE accounts ADD COLUMN verified_at BIGINT;

-- id is the session's public name. Of the secret in the cookie, only the hash is stored.
ALTER TABLE web_sessions ADD COLUMN id TEXT NOT NULL DEFAULT '';
ALTER TABLE web_sessions ADD COLUMN method TEXT NOT NULL DEFAULT 'password';
ALTER TABLE web_sessions ADD COLUMN user_agent TEXT NOT NULL DEFAULT '';
ALTER TABLE web_sessions ADD COLUMN ip TEXT NOT NULL DEFAULT '';
ALTER TABLE web_sessions ADD COLUMN used_at BIGINT NOT NULL DEFAULT 0;
UPDATE web_sessions SET id = substr(hash, 1, 24), used_at = created_at;
CREATE UNIQUE INDEX web_sessions_id ON web_sessions (id);
CREATE INDEX web_sessions_account ON web_sessions (account_id);

ALTER TABLE links ADD COLUMN last_used_at BIGINT;
ALTER TABLE links ADD COLUMN last_ip TEXT NOT NULL DEFAULT '';
UPDATE links SET last_used_at = used_at;

-- One row per mailed link that is still valid. email is the address that the link proves.
CREATE TABLE mail_tokens (
	hash       TEXT PRIMARY KEY,
	account_id TEXT NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
	purpose    TEXT NOT NULL,
	email      TEXT NOT NULL,
	created_at BIGINT NOT NULL,
	expires_at BIGINT NOT NULL
);
CREATE UNIQUE INDEX mail_tokens_purpose ON mail_tokens (account_id, purpose);

-- Mails sent in the last hour, to limit how many a person gets.
CREATE TABLE mails (
	id         TEXT PRIMARY KEY,
	account_id TEXT NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
	email      TEXT NOT NULL,
	at         BIGINT NOT NULL
);
CREATE INDEX mails_account ON mails (account_id, at);
CREATE INDEX mails_email ON mails (email, at);
CREATE INDEX mails_at ON mails (at);

CREATE TABLE identities (
	provider   TEXT NOT NULL,
	subject    TEXT NOT NULL,
	account_id TEXT NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
	email      TEXT NOT NULL,
	linked_at  BIGINT NOT NULL,
	used_at    BIGINT NOT NULL,
	PRIMARY KEY (provider, subject)
);
CREATE INDEX identities_account ON identities (account_id);

-- credential is the public key and the other data needed to verify a response. It contains no secret.
CREATE TABLE passkeys (
	id            TEXT PRIMARY KEY,
	account_id    TEXT NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
	credential_id TEXT NOT NULL UNIQUE,
	name          TEXT NOT NULL,
	credential    TEXT NOT NULL,
	sign_count    BIGINT NOT NULL,
	created_at    BIGINT NOT NULL,
	used_at       BIGINT
);
CREATE INDEX passkeys_account ON passkeys (account_id);

-- +goose Down
DROP TABLE passkeys;
DROP TABLE identities;
DROP TABLE mails;
DROP TABLE mail_tokens;
ALTER TABLE links DROP COLUMN last_ip;
ALTER TABLE links DROP COLUMN last_used_at;
DROP INDEX web_sessions_account;
DROP INDEX web_sessions_id;
ALTER TABLE web_sessions DROP COLUMN used_at;
ALTER TABLE web_sessions DROP COLUMN ip;
ALTER TABLE web_sessions DROP COLUMN user_agent;
ALTER TABLE web_sessions DROP COLUMN method;
ALTER TABLE web_sessions DROP COLUMN id;
ALTER TABLE accounts DROP COLUMN verified_at;
