-- +goose Up
CREATE TABLE projects (
	account_id TEXT NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
	app_id     TEXT NOT NULL,
	created_at BIGINT NOT NULL,
	PRIMARY KEY (account_id, app_id)
);

-- is_current marks the session that a client with this account, link, project and platform resumes.
CREATE TABLE sessions (
	id             TEXT PRIMARY KEY,
	account_id     TEXT NOT NULL,
	link_id        TEXT NOT NULL,
	app_id         TEXT NOT NULL,
	platform       TEXT NOT NULL,
	device_model   TEXT NOT NULL,
	is_current     INTEGER NOT NULL,
	created_at     BIGINT NOT NULL,
	last_active_at BIGINT NOT NULL,
	expires_at     BIGINT NOT NULL,
	closed_at      BIGINT,
	last_seq       BIGINT NOT NULL DEFAULT 0,
	FOREIGN KEY (account_id, app_id) REFERENCES projects (account_id, app_id) ON DELETE CASCADE
);
CREATE UNIQUE INDEX sessions_current ON sessions (account_id, link_id, app_id, platform) WHERE is_current = 1;
CREATE INDEX sessions_account ON sessions (account_id, created_at);

CREATE TABLE session_secrets (
	session_id TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
	hash       TEXT NOT NULL,
	created_at BIGINT NOT NULL,
	revoked_at BIGINT,
	PRIMARY KEY (session_id, hash)
);

-- body is the row's payload. ok is 1 for the result of a command that succeeded.
CREATE TABLE events (
	session_id TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
	seq        BIGINT NOT NULL,
	sender     TEXT NOT NULL,
	frame_id   TEXT NOT NULL,
	kind       TEXT NOT NULL,
	type       TEXT NOT NULL,
	chip       TEXT NOT NULL,
	ok         INTEGER NOT NULL,
	at         BIGINT NOT NULL,
	body       TEXT NOT NULL,
	PRIMARY KEY (session_id, seq)
);
CREATE UNIQUE INDEX events_frame ON events (session_id, frame_id, kind, sender);
CREATE INDEX events_display ON events (session_id, seq) WHERE kind = 'request';

-- +goose Down
DROP TABLE events;
DROP TABLE session_secrets;
DROP TABLE sessions;
DROP TABLE projects;
