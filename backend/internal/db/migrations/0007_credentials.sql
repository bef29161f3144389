-- +goose Up
-- sealed is the value, encrypted with a data key. wrapped is the data key, encrypted with the key named by key_id,
-- which is not in the database. sealed_for is the project that the envelope is bound to. It does not change when a
-- merge moves the row.
CREATE TABLE credentials (
	account_id   TEXT NOT NULL,
	app_id       TEXT NOT NULL,
	provider     TEXT NOT NULL,
	sealed_for   TEXT NOT NULL,
	sealed       TEXT NOT NULL,
	wrapped      TEXT NOT NULL,
	key_id       TEXT NOT NULL,
	hint         TEXT NOT NULL,
	set_at       BIGINT NOT NULL,
	requested_by TEXT NOT NULL,
	tested_at    BIGINT,
	test_result  TEXT NOT NULL,
	PRIMARY KEY (account_id, app_id, provider),
	FOREIGN KEY (account_id, app_id) REFERENCES projects (account_id, app_id) ON DELETE CASCADE
);
CREATE INDEX credentials_key ON credentials (key_id);

-- A used link is deleted. requested_by is not a foreign key, because a request outlives the requesting agent's link.
CREATE TABLE credential_links (
	hash         TEXT PRIMARY KEY,
	account_id   TEXT NOT NULL,
	app_id       TEXT NOT NULL,
	provider     TEXT NOT NULL,
	requested_by TEXT NOT NULL,
	created_at   BIGINT NOT NULL,
	expires_at   BIGINT NOT NULL,
	FOREIGN KEY (account_id, app_id) REFERENCES projects (account_id, app_id) ON DELETE CASCADE
);
CREATE INDEX credential_links_project ON credential_links (account_id, app_id, created_at);
CREATE INDEX credential_links_expires ON credential_links (expires_at);

-- +goose Down
DROP TABLE credential_links;
DROP TABLE credentials;
