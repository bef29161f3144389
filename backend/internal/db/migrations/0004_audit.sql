-- +goose Up
-- ids increase with time. link_id is not a foreign key, because an entry outlives its link.
CREATE TABLE audit (
	id         TEXT PRIMARY KEY,
	account_id TEXT NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
	at         BIGINT NOT NULL,
	actor      TEXT NOT NULL,
	link_id    TEXT NOT NULL,
	action     TEXT NOT NULL,
	app_id     TEXT NOT NULL,
	summary    TEXT NOT NULL,
	before     TEXT,
	after      TEXT,
	undone_by  TEXT
);
CREATE INDEX audit_account ON audit (account_id, id);
CREATE INDEX audit_project ON audit (account_id, app_id, id);

-- +goose Down
DROP TABLE audit;
