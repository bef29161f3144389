-- +goose Up
-- One row per passkey ceremony that got a response: tries is the number of responses, and done is 1 once it is
-- finished. The row is deleted some time after until, when the ceremony has long expired. challenge is random and not
-- secret.
CREATE TABLE passkey_ceremonies (
	challenge TEXT PRIMARY KEY,
	until     BIGINT NOT NULL,
	tries     INTEGER NOT NULL,
	done      INTEGER NOT NULL
);
CREATE INDEX passkey_ceremonies_until ON passkey_ceremonies (until);

-- +goose Down
DROP TABLE passkey_ceremonies;
