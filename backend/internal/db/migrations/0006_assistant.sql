-- +goose Up
-- updated_link is not a foreign key, because a config outlives the link that changed it.
CREATE TABLE assistant_configs (
	account_id     TEXT NOT NULL,
	app_id         TEXT NOT NULL,
	version        BIGINT NOT NULL,
	realtime_model TEXT NOT NULL,
	voice          TEXT NOT NULL,
	memory_model   TEXT NOT NULL,
	session_memory INTEGER NOT NULL,
	sounds         INTEGER NOT NULL,
	updated_at     BIGINT NOT NULL,
	updated_by     TEXT NOT NULL,
	updated_link   TEXT NOT NULL,
	PRIMARY KEY (account_id, app_id),
	FOREIGN KEY (account_id, app_id) REFERENCES projects (account_id, app_id) ON DELETE CASCADE
);

-- +goose Down
DROP TABLE assistant_configs;
