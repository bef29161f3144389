-- +goose Up
-- The state of a session's glasses and apps, independent of which rows its event log still has: battery, wear,
-- permissions, announced phrases, transcription and so on. body is JSON (sessions.State). Each row that changes the
-- state replaces it.
CREATE TABLE session_states (
	session_id TEXT PRIMARY KEY REFERENCES sessions (id) ON DELETE CASCADE,
	body       TEXT NOT NULL
);

-- +goose Down
DROP TABLE session_states;
