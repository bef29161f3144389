-- +goose Up
-- What a session knows of its glasses and its apps whatever rows its event log still has: battery, wear, permissions and
-- so on, announced phrases, transcription. body is JSON (sessions.State), replaced with each row that changes it.
CREATE TABLE session_states (
	session_id TEXT PRIMARY KEY REFERENCES sessions (id) ON DELETE CASCADE,
	body       TEXT NOT NULL
);

-- +goose Down
DROP TABLE session_states;
