-- +goose Up
CREATE TABLE project_keys (
	hash       TEXT PRIMARY KEY,
	account_id TEXT NOT NULL,
	app_id     TEXT NOT NULL,
	name       TEXT NOT NULL,
	hint       TEXT NOT NULL,
	created_at BIGINT NOT NULL,
	FOREIGN KEY (account_id, app_id) REFERENCES projects (account_id, app_id) ON DELETE CASCADE
);
CREATE INDEX project_keys_project ON project_keys (account_id, app_id);

-- +goose Down
DROP TABLE project_keys;
