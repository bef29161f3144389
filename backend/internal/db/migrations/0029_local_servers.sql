-- +goose Up
-- Model servers that a project's owner added, on a backend that runs on the owner's machine. models is a JSON list of
-- model names. problem says why the last check failed, or is empty. A server's key is a row in credentials.
CREATE TABLE local_servers (
	account_id TEXT NOT NULL,
	app_id     TEXT NOT NULL,
	id         TEXT NOT NULL,
	base_url   TEXT NOT NULL,
	models     TEXT NOT NULL,
	keyed      INTEGER NOT NULL,
	problem    TEXT NOT NULL,
	checked_at BIGINT NOT NULL,
	PRIMARY KEY (account_id, app_id, id),
	FOREIGN KEY (account_id, app_id) REFERENCES projects (account_id, app_id) ON DELETE CASCADE
);

-- +goose Down
DROP TABLE local_servers;
