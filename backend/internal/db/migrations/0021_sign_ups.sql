-- +goose Up
-- Sign-ups that wait for their mailed link to be opened, if the backend sends mail. A row refers to no account: its
-- address may already have one, which the page must not reveal. next is the path to continue to.
CREATE TABLE sign_ups (
	hash          TEXT PRIMARY KEY,
	email         TEXT NOT NULL,
	password_hash TEXT NOT NULL,
	next          TEXT NOT NULL,
	created_at    BIGINT NOT NULL,
	expires_at    BIGINT NOT NULL
);
CREATE INDEX sign_ups_email ON sign_ups (email, created_at);
CREATE INDEX sign_ups_expires ON sign_ups (expires_at);

-- +goose Down
DROP TABLE sign_ups;
