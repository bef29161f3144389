-- +goose Up
-- What calls with a project key alone may spend per UTC day, in micro-USD. NULL sets no limit, as in every project that
-- an earlier version created.
ALTER TABLE gateway_settings ADD COLUMN key_allowance BIGINT;

-- Whether a hold counts toward this allowance, and what such calls have spent. Only the rows of a project and a day use
-- key_spent. What they hold is the sum of their open holds.
ALTER TABLE credit_holds ADD COLUMN by_key INTEGER NOT NULL DEFAULT 0;
ALTER TABLE credit_spending ADD COLUMN key_spent BIGINT NOT NULL DEFAULT 0;

-- Which apps a project accepts attestations of: lists, one entry a line. test_key is the public key (PEM) of development
-- installs, or empty. The keys of Play Integrity are a row in credentials.
CREATE TABLE attest_settings (
	account_id        TEXT NOT NULL,
	app_id            TEXT NOT NULL,
	apple_apps        TEXT NOT NULL,
	apple_development INTEGER NOT NULL,
	packages          TEXT NOT NULL,
	certificates      TEXT NOT NULL,
	test_key          TEXT NOT NULL,
	version           BIGINT NOT NULL,
	PRIMARY KEY (account_id, app_id),
	FOREIGN KEY (account_id, app_id) REFERENCES projects (account_id, app_id) ON DELETE CASCADE
);

-- Keyed hashes of challenges that were issued and not used yet.
CREATE TABLE attest_challenges (
	hash       TEXT PRIMARY KEY,
	account_id TEXT NOT NULL,
	app_id     TEXT NOT NULL,
	expires_at BIGINT NOT NULL,
	FOREIGN KEY (account_id, app_id) REFERENCES projects (account_id, app_id) ON DELETE CASCADE
);
CREATE INDEX attest_challenges_project ON attest_challenges (account_id, app_id, expires_at);

-- Installs that were attested. key_hash identifies the install: a hash of Apple's key, or of a random ID of the app.
-- Only Apple's installs have a public key (hexadecimal) and a counter. project_key is the ID of the project key that
-- the app used. expires_at is when the latest token expires.
CREATE TABLE attest_installs (
	id          TEXT PRIMARY KEY,
	account_id  TEXT NOT NULL,
	app_id      TEXT NOT NULL,
	platform    TEXT NOT NULL,
	key_hash    TEXT NOT NULL,
	public_key  TEXT NOT NULL,
	app         TEXT NOT NULL,
	counter     BIGINT NOT NULL,
	environment TEXT NOT NULL,
	project_key TEXT NOT NULL,
	created_at  BIGINT NOT NULL,
	attested_at BIGINT NOT NULL,
	expires_at  BIGINT NOT NULL,
	revoked_at  BIGINT,
	UNIQUE (account_id, app_id, key_hash),
	FOREIGN KEY (account_id, app_id) REFERENCES projects (account_id, app_id) ON DELETE CASCADE
);
CREATE INDEX attest_installs_latest ON attest_installs (account_id, app_id, attested_at);

-- Keyed hashes of the tokens of installs, and the IDs of the project keys with which they were obtained.
CREATE TABLE attest_tokens (
	hash       TEXT PRIMARY KEY,
	install_id TEXT NOT NULL REFERENCES attest_installs (id) ON DELETE CASCADE,
	project_key TEXT NOT NULL,
	expires_at BIGINT NOT NULL
);
CREATE INDEX attest_tokens_install ON attest_tokens (install_id);

-- How many attestations were refused per UTC day, and why. Nothing of the attestation is kept.
CREATE TABLE attest_refusals (
	account_id TEXT NOT NULL,
	app_id     TEXT NOT NULL,
	day        TEXT NOT NULL,
	platform   TEXT NOT NULL,
	reason     TEXT NOT NULL,
	count      BIGINT NOT NULL,
	last_at    BIGINT NOT NULL,
	PRIMARY KEY (account_id, app_id, day, platform, reason),
	FOREIGN KEY (account_id, app_id) REFERENCES projects (account_id, app_id) ON DELETE CASCADE
);

-- +goose Down
DROP TABLE attest_refusals;
DROP TABLE attest_tokens;
DROP TABLE attest_installs;
DROP TABLE attest_challenges;
DROP TABLE attest_settings;
ALTER TABLE credit_spending DROP COLUMN key_spent;
ALTER TABLE credit_holds DROP COLUMN by_key;
ALTER TABLE gateway_settings DROP COLUMN key_allowance;
