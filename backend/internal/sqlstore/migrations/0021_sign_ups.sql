-- +goose Up
-- Sign-ups that wait for the mailed link to be opened, where mail is sent. No account hangs on one: it may be for an
-- address that has an account, which the page must not tell. next is the path that the person came from.
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
