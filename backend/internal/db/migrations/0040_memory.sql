-- +goose Up
-- What apps remember about their users between conversations. user_hash is a keyed hash of the user's secret with the
-- account and the project in sealed_for, which does not change when a merge moves the row. sealed, wrapped and key_id
-- are as in credentials, and '' in a row whose text was erased. Such a row keeps only generation, which marks the
-- erasures, for as long as a conversation may last that began before.
CREATE TABLE memories (
	account_id TEXT NOT NULL,
	app_id     TEXT NOT NULL,
	user_hash  TEXT NOT NULL,
	sealed_for TEXT NOT NULL,
	sealed     TEXT NOT NULL,
	wrapped    TEXT NOT NULL,
	key_id     TEXT NOT NULL,
	generation BIGINT NOT NULL,
	created_at BIGINT NOT NULL,
	updated_at BIGINT NOT NULL,
	used_at    BIGINT NOT NULL,
	expires_at BIGINT NOT NULL,
	PRIMARY KEY (account_id, app_id, user_hash),
	FOREIGN KEY (account_id, app_id) REFERENCES projects (account_id, app_id) ON DELETE CASCADE
);
CREATE INDEX memories_key ON memories (key_id);
CREATE INDEX memories_expires ON memories (expires_at);

-- memory_days is when a profile is deleted, in days after its last use. NULL is the default. memory_generation is
-- the mark of the last erasure of all profiles of a project, or 0.
ALTER TABLE gateway_settings ADD COLUMN memory_days BIGINT;
ALTER TABLE gateway_settings ADD COLUMN memory_generation BIGINT NOT NULL DEFAULT 0;

-- +goose Down
ALTER TABLE gateway_settings DROP COLUMN memory_generation;
ALTER TABLE gateway_settings DROP COLUMN memory_days;
DROP TABLE memories;
