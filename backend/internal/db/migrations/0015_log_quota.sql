-- +goose Up
-- first_seq is the number of the oldest row to keep; lower rows are deleted now or soon. log_bytes is the size of the
-- kept rows. oldest_at is when the oldest stored row was written, or NULL for a session without rows.
ALTER TABLE sessions ADD COLUMN first_seq BIGINT NOT NULL DEFAULT 1;
ALTER TABLE sessions ADD COLUMN log_bytes BIGINT NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN oldest_at BIGINT;
UPDATE sessions SET
	log_bytes = COALESCE((SELECT SUM(OCTET_LENGTH(e.body) + OCTET_LENGTH(e.type) + OCTET_LENGTH(e.frame_id) + 64)
		FROM events e WHERE e.session_id = sessions.id), 0),
	oldest_at = (SELECT e.at FROM events e WHERE e.session_id = sessions.id ORDER BY e.seq LIMIT 1);
CREATE INDEX sessions_with_rows ON sessions (account_id, oldest_at) WHERE oldest_at IS NOT NULL;

-- bytes is the sum of log_bytes of the account's sessions.
CREATE TABLE account_logs (
	account_id TEXT PRIMARY KEY REFERENCES accounts (id) ON DELETE CASCADE,
	bytes      BIGINT NOT NULL
);
INSERT INTO account_logs (account_id, bytes) SELECT account_id, SUM(log_bytes) FROM sessions GROUP BY account_id;

-- The last successful display command among the deleted rows. A page that attaches draws it.
CREATE TABLE session_displays (
	session_id TEXT PRIMARY KEY REFERENCES sessions (id) ON DELETE CASCADE,
	seq        BIGINT NOT NULL,
	at         BIGINT NOT NULL,
	kind       TEXT NOT NULL,
	chip       TEXT NOT NULL,
	type       TEXT NOT NULL,
	frame_id   TEXT NOT NULL,
	sender     TEXT NOT NULL,
	body       TEXT NOT NULL
);

-- +goose Down
DROP TABLE session_displays;
DROP TABLE account_logs;
DROP INDEX sessions_with_rows;
ALTER TABLE sessions DROP COLUMN oldest_at;
ALTER TABLE sessions DROP COLUMN log_bytes;
ALTER TABLE sessions DROP COLUMN first_seq;
