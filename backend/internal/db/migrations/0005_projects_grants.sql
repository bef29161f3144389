-- +goose Up
-- An empty display_name means the default name. platforms is a comma-separated list.
ALTER TABLE projects ADD COLUMN display_name TEXT NOT NULL DEFAULT '';
ALTER TABLE projects ADD COLUMN platforms TEXT NOT NULL DEFAULT '';

-- alias is the id of a project that was merged into app_id.
CREATE TABLE project_aliases (
	account_id TEXT NOT NULL,
	alias      TEXT NOT NULL,
	app_id     TEXT NOT NULL,
	created_at BIGINT NOT NULL,
	PRIMARY KEY (account_id, alias),
	FOREIGN KEY (account_id, app_id) REFERENCES projects (account_id, app_id) ON DELETE CASCADE
);
CREATE INDEX project_aliases_project ON project_aliases (account_id, app_id);

-- For existing keys, the creator and the prefix of the secret are unknown. Their ids are derived from the keyed
-- hashes.
ALTER TABLE project_keys ADD COLUMN id TEXT NOT NULL DEFAULT '';
ALTER TABLE project_keys ADD COLUMN prefix TEXT NOT NULL DEFAULT 'spk_';
ALTER TABLE project_keys ADD COLUMN actor TEXT NOT NULL DEFAULT '';
ALTER TABLE project_keys ADD COLUMN link_id TEXT NOT NULL DEFAULT '';
ALTER TABLE project_keys ADD COLUMN last_used_at BIGINT;
ALTER TABLE project_keys ADD COLUMN revoked_at BIGINT;
UPDATE project_keys SET id = substr(hash, 1, 8) || '-' || substr(hash, 9, 4) || '-' || substr(hash, 13, 4) || '-' ||
	substr(hash, 17, 4) || '-' || substr(hash, 21, 12);
CREATE UNIQUE INDEX project_keys_id ON project_keys (id);

CREATE INDEX sessions_project ON sessions (account_id, app_id);

-- Only levels that differ from the default. field is empty except for the assistant's config.
CREATE TABLE project_grants (
	account_id TEXT NOT NULL,
	app_id     TEXT NOT NULL,
	capability TEXT NOT NULL,
	field      TEXT NOT NULL,
	level      TEXT NOT NULL,
	PRIMARY KEY (account_id, app_id, capability, field),
	FOREIGN KEY (account_id, app_id) REFERENCES projects (account_id, app_id) ON DELETE CASCADE
);

CREATE INDEX audit_recent ON audit (account_id, action, at);
CREATE INDEX audit_at ON audit (at);

-- +goose Down
DROP INDEX audit_at;
DROP INDEX audit_recent;
DROP TABLE project_grants;
DROP INDEX sessions_project;
DROP INDEX project_keys_id;
ALTER TABLE project_keys DROP COLUMN revoked_at;
ALTER TABLE project_keys DROP COLUMN last_used_at;
ALTER TABLE project_keys DROP COLUMN link_id;
ALTER TABLE project_keys DROP COLUMN actor;
ALTER TABLE project_keys DROP COLUMN prefix;
ALTER TABLE project_keys DROP COLUMN id;
DROP TABLE project_aliases;
ALTER TABLE projects DROP COLUMN platforms;
ALTER TABLE projects DROP COLUMN display_name;
